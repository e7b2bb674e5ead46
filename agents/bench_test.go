package agents

import "testing"

// BenchmarkRecognise judges one opening of each agent; the scan of the body is
// not in it.
func BenchmarkRecognise(b *testing.B) {
	seen := map[Agent]bool{}
	for _, r := range openings(b) {
		if seen[r.Agent] {
			continue
		}
		seen[r.Agent] = true
		b.Run(string(r.Agent), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Recognise(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
