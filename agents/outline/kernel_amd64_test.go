//go:build !purego

package outline

// everyKernel calls f once for each kernel that this machine can run.
func everyKernel(f func(kernel string)) {
	avx2, avx512, vbmi2 := hasAVX2, hasAVX512, hasVBMI2
	defer func() { hasAVX2, hasAVX512, hasVBMI2 = avx2, avx512, vbmi2 }()
	if vbmi2 {
		f("vbmi2")
	}
	hasVBMI2 = false
	if avx512 {
		f("avx512")
	}
	hasAVX512 = false
	if avx2 {
		f("avx2")
	}
	hasAVX2 = false
	f("portable")
}
