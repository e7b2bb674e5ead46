//go:build !purego

#include "textflag.h"

// What can be wrong with a byte and the one after it, a bit an error, by the
// halves of the two bytes: an error is there if all three tables say so.
// Bits: 1 too short, 2 too long, 4 overlong of three bytes, 8 and 64 too large
// (64 also overlong of four), 16 surrogate, 32 overlong of two, 128 two
// continuations (right after a leading byte of three or four).
DATA firstHigh<>+0(SB)/8, $0x0202020202020202
DATA firstHigh<>+8(SB)/8, $0x4915012180808080
GLOBL firstHigh<>(SB), RODATA|NOPTR, $16
DATA firstLow<>+0(SB)/8, $0xcbcbcb8b8383a3e7
DATA firstLow<>+8(SB)/8, $0xcbcbdbcbcbcbcbcb
GLOBL firstLow<>(SB), RODATA|NOPTR, $16
DATA secondHigh<>+0(SB)/8, $0x0101010101010101
DATA secondHigh<>+8(SB)/8, $0x01010101babaaee6
GLOBL secondHigh<>(SB), RODATA|NOPTR, $16

DATA nibbles<>+0(SB)/8, $0x0f0f0f0f0f0f0f0f
GLOBL nibbles<>(SB), RODATA|NOPTR, $8
DATA third<>+0(SB)/8, $0x6060606060606060
GLOBL third<>(SB), RODATA|NOPTR, $8
DATA fourth<>+0(SB)/8, $0x7070707070707070
GLOBL fourth<>(SB), RODATA|NOPTR, $8
DATA tops<>+0(SB)/8, $0x8080808080808080
GLOBL tops<>(SB), RODATA|NOPTR, $8

// func validAVX2(p *byte, n int, before *[32]byte) bool
//
// Says whether n blocks of 32 bytes are UTF-8, but for a character that their
// end cuts. before holds the 32 bytes in front of them, and then their last.
TEXT ·validAVX2(SB), NOSPLIT, $0-25
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ before+16(FP), DI
	VBROADCASTI128 firstHigh<>(SB), Y8
	VBROADCASTI128 firstLow<>(SB), Y9
	VBROADCASTI128 secondHigh<>(SB), Y10
	VPBROADCASTQ nibbles<>(SB), Y11
	VPBROADCASTQ third<>(SB), Y12
	VPBROADCASTQ fourth<>(SB), Y13
	VPBROADCASTQ tops<>(SB), Y14
	VPXOR Y15, Y15, Y15      // errors
	VMOVDQU (DI), Y1         // the block before

next:
	CMPQ CX, $4
	JLT  few
	VMOVDQU (SI), Y2
	VPOR 32(SI), Y2, Y2
	VPOR 64(SI), Y2, Y2
	VPOR 96(SI), Y2, Y2
	VPOR Y1, Y2, Y2
	MOVQ $4, BX
	VPTEST Y14, Y2
	JNZ  some
	VMOVDQU 96(SI), Y1       // all ASCII
	ADDQ $128, SI
	SUBQ $4, CX
	JMP  next

few:
	MOVQ CX, BX
	TESTQ BX, BX
	JZ   done

some:
	SUBQ BX, CX

block:
	VMOVDQU (SI), Y0
	VPERM2I128 $0x21, Y0, Y1, Y2
	VPALIGNR $15, Y2, Y0, Y3 // each byte's forerunner
	VPALIGNR $14, Y2, Y0, Y4 // the one before that
	VPALIGNR $13, Y2, Y0, Y5
	VPSRLW $4, Y3, Y6
	VPAND Y11, Y6, Y6
	VPSHUFB Y6, Y8, Y6
	VPAND Y11, Y3, Y3
	VPSHUFB Y3, Y9, Y3
	VPAND Y3, Y6, Y6
	VPSRLW $4, Y0, Y3
	VPAND Y11, Y3, Y3
	VPSHUFB Y3, Y10, Y3
	VPAND Y3, Y6, Y6
	VPSUBUSB Y12, Y4, Y4     // must be the third byte of a character
	VPSUBUSB Y13, Y5, Y5     // or the fourth
	VPOR Y4, Y5, Y4
	VPAND Y14, Y4, Y4
	VPXOR Y4, Y6, Y6
	VPOR Y6, Y15, Y15
	VMOVDQA Y0, Y1
	ADDQ $32, SI
	DECQ BX
	JNZ  block
	JMP  next

done:
	VMOVDQU Y1, (DI)
	VPTEST Y15, Y15
	SETEQ ret+24(FP)
	VZEROUPPER
	RET
