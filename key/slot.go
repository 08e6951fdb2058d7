package key

import "strings"

const slots = 16384

// crcTable drives CRC16/XMODEM: polynomial 0x1021, start 0, nothing reflected.
var crcTable = func() (t [256]uint16) {
	for i := range t {
		c := uint16(i) << 8
		for range 8 {
			if c&0x8000 != 0 {
				c = c<<1 ^ 0x1021
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()

func crc16(crc uint16, s string) uint16 {
	for i := range len(s) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^s[i]]
	}
	return crc
}

// Slot returns the slot, 0 to 16383, in which a Redis cluster keeps the key k:
// CRC16/XMODEM of the hash tag, modulo 16384. The hash tag is what stands
// between the first '{' and the first '}' after it; where there is none, or
// nothing in it, the whole key counts. Any string has a slot. It allocates
// nothing.
func Slot(k string) int {
	if open := strings.IndexByte(k, '{'); open >= 0 {
		if n := strings.IndexByte(k[open+1:], '}'); n > 0 {
			k = k[open+1 : open+1+n]
		}
	}
	return int(crc16(0, k) % slots)
}
