package filestore

// The times of pace.go, for tests of what it promises.
const (
	SaveApart = saveApart
	CrowdLife = crowdLife
)
