//go:build !amd64 || purego

package outline

// everyKernel calls f once for each kernel that this machine can run.
func everyKernel(f func(kernel string)) { f("portable") }
