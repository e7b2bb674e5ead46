//go:build !purego

#include "textflag.h"

// Two tables by nibble: a byte makes an escape of two bytes if the entries of its
// low and of its high half have a bit in common. Bytes from 0x80 on have no
// low entry.
DATA low<>+0(SB)/8, $0x00040008000d0000
DATA low<>+8(SB)/8, $0x0104000200000000
GLOBL low<>(SB), RODATA|NOPTR, $16
DATA high<>+0(SB)/8, $0x0804020000010000
DATA high<>+8(SB)/8, $0x0000000000000000
GLOBL high<>(SB), RODATA|NOPTR, $16

// What the letter of an escape stands for, for bytes below 0x80.
DATA letters<>+0(SB)/8, $0x0706050403020100
DATA letters<>+8(SB)/8, $0x0f0e0d0c0b0a0908
DATA letters<>+16(SB)/8, $0x1716151413121110
DATA letters<>+24(SB)/8, $0x1f1e1d1c1b1a1918
DATA letters<>+32(SB)/8, $0x2726252423222120
DATA letters<>+40(SB)/8, $0x2f2e2d2c2b2a2928
DATA letters<>+48(SB)/8, $0x3736353433323130
DATA letters<>+56(SB)/8, $0x3f3e3d3c3b3a3938
DATA letters<>+64(SB)/8, $0x4746454443424140
DATA letters<>+72(SB)/8, $0x4f4e4d4c4b4a4948
DATA letters<>+80(SB)/8, $0x5756555453525150
DATA letters<>+88(SB)/8, $0x5f5e5d5c5b5a5958
DATA letters<>+96(SB)/8, $0x670c656463086160
DATA letters<>+104(SB)/8, $0x6f0a6d6c6b6a6968
DATA letters<>+112(SB)/8, $0x77767509730d7170
DATA letters<>+120(SB)/8, $0x7f7e7d7c7b7a7978
GLOBL letters<>(SB), RODATA|NOPTR, $128

DATA quotes<>+0(SB)/8, $0x2222222222222222
GLOBL quotes<>(SB), RODATA|NOPTR, $8
DATA slashes<>+0(SB)/8, $0x5c5c5c5c5c5c5c5c
GLOBL slashes<>(SB), RODATA|NOPTR, $8
DATA controls<>+0(SB)/8, $0x1f1f1f1f1f1f1f1f
GLOBL controls<>(SB), RODATA|NOPTR, $8
DATA spaces<>+0(SB)/8, $0x2020202020202020
GLOBL spaces<>(SB), RODATA|NOPTR, $8
DATA us<>+0(SB)/8, $0x7575757575757575
GLOBL us<>(SB), RODATA|NOPTR, $8
DATA nibbles<>+0(SB)/8, $0x0f0f0f0f0f0f0f0f
GLOBL nibbles<>(SB), RODATA|NOPTR, $8

// func masksAVX2(m *masks, src *byte, n int)
TEXT ·masksAVX2(SB), NOSPLIT, $0-24
	MOVQ m+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VPBROADCASTQ quotes<>(SB), Y10
	VPBROADCASTQ slashes<>(SB), Y11
	VPBROADCASTQ controls<>(SB), Y12
	VBROADCASTI128 low<>(SB), Y13
	VBROADCASTI128 high<>(SB), Y14
	VPBROADCASTQ nibbles<>(SB), Y15
	VPXOR Y8, Y8, Y8

block:
	VMOVDQU 0(SI), Y0
	VPCMPEQB Y0, Y10, Y1
	VPMOVMSKB Y1, R8
	VPCMPEQB Y0, Y11, Y1
	VPMOVMSKB Y1, R9
	VPMINUB Y0, Y12, Y1
	VPCMPEQB Y0, Y1, Y1
	VPMOVMSKB Y1, R10
	VPSHUFB Y0, Y13, Y2
	VPSRLW $4, Y0, Y3
	VPAND Y3, Y15, Y3
	VPSHUFB Y3, Y14, Y3
	VPAND Y2, Y3, Y3
	VPCMPEQB Y3, Y8, Y3
	VPMOVMSKB Y3, R11
	VMOVDQU 32(SI), Y0
	VPCMPEQB Y0, Y10, Y1
	VPMOVMSKB Y1, DX
	SHLQ $32, DX
	ORQ DX, R8
	VPCMPEQB Y0, Y11, Y1
	VPMOVMSKB Y1, DX
	SHLQ $32, DX
	ORQ DX, R9
	VPMINUB Y0, Y12, Y1
	VPCMPEQB Y0, Y1, Y1
	VPMOVMSKB Y1, DX
	SHLQ $32, DX
	ORQ DX, R10
	VPSHUFB Y0, Y13, Y2
	VPSRLW $4, Y0, Y3
	VPAND Y3, Y15, Y3
	VPSHUFB Y3, Y14, Y3
	VPAND Y2, Y3, Y3
	VPCMPEQB Y3, Y8, Y3
	VPMOVMSKB Y3, DX
	SHLQ $32, DX
	ORQ DX, R11
	NOTQ R11
	MOVQ R8, (DI)
	MOVQ R9, 256(DI)
	MOVQ R10, 512(DI)
	MOVQ R11, 768(DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// func masksAVX512(m *masks, src *byte, n int)
TEXT ·masksAVX512(SB), NOSPLIT, $0-24
	MOVQ m+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VPBROADCASTQ quotes<>(SB), Z10
	VPBROADCASTQ slashes<>(SB), Z11
	VPBROADCASTQ spaces<>(SB), Z12
	VBROADCASTI32X4 low<>(SB), Z13
	VBROADCASTI32X4 high<>(SB), Z14
	VPBROADCASTQ nibbles<>(SB), Z15

block:
	VMOVDQU64 (SI), Z0
	VPCMPEQB Z10, Z0, K1
	VPCMPEQB Z11, Z0, K2
	VPCMPUB $1, Z12, Z0, K3
	VPSHUFB Z0, Z13, Z2
	VPSRLW $4, Z0, Z3
	VPANDQ Z15, Z3, Z3
	VPSHUFB Z3, Z14, Z3
	VPTESTMB Z2, Z3, K4
	KMOVQ K1, (DI)
	KMOVQ K2, 256(DI)
	KMOVQ K3, 512(DI)
	KMOVQ K4, 768(DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// func decodeVBMI2(dst, src *byte, n int) (written, read int)
//
// Decodes blocks of 64 bytes, at most n of them. It stops early before a block
// with a \u escape. A backslash at its end is left unread. dst needs 64 bytes
// for each block. The next block's address does not depend on what was found,
// so that blocks overlap in the processor.
TEXT ·decodeVBMI2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ DI, R14
	MOVQ SI, R15
	VPBROADCASTQ slashes<>(SB), Z11
	VPBROADCASTQ us<>(SB), Z9
	VMOVDQU64 letters<>+0(SB), Z4
	VMOVDQU64 letters<>+64(SB), Z5
	MOVQ $0x5555555555555555, R13
	XORL DX, DX              // 1: the block's first byte is escaped

block:
	VMOVDQU64 (SI), Z0
	VPCMPEQB Z11, Z0, K1
	KMOVQ K1, R8
	MOVQ R8, R9
	ORQ  DX, R9
	JNZ  escaped
	VMOVDQU64 Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ  block
	JMP  done

escaped:
	// As escapes does: the characters after an odd number of backslashes.
	VPCMPEQB Z9, Z0, K2
	MOVQ DX, BX
	ANDNQ R8, DX, R8     // an escaped backslash begins nothing
	LEAQ (DX)(R8*2), R9  // follows a backslash
	MOVQ R13, R10
	ORQ  R9, R10
	ANDNQ R8, R10, R10   // begins a run at an odd place
	XORL DX, DX
	ADDQ R8, R10
	ADCQ $0, DX
	ADDQ R10, R10
	XORQ R13, R10
	ANDQ R9, R10         // escaped
	KMOVQ K2, R11
	TESTQ R10, R11
	JNZ  long
	ANDNQ R8, R10, R12   // begins an escape
	NOTQ R12
	KMOVQ R10, K2
	KMOVQ R12, K3
	VMOVDQA64 Z0, Z1
	VPERMI2B Z5, Z4, Z1
	VMOVDQU8 Z1, K2, Z0
	VPCOMPRESSB Z0, K3, Z2
	VMOVDQU64 Z2, (DI)
	POPCNTQ R12, R12
	ADDQ R12, DI
	ADDQ $64, SI
	DECQ CX
	JNZ  block
	JMP  done

long:
	MOVQ BX, DX

done:
	VZEROUPPER
	SUBQ DX, SI
	SUBQ R14, DI
	SUBQ R15, SI
	MOVQ DI, written+24(FP)
	MOVQ SI, read+32(FP)
	RET
