import { SoaError } from '../../core/errors.ts'

/**
 * A number of 31 bits in one to five bytes: seven bits each, lowest first, a set top bit means "one more". [MC-NMF] 2.2.2, [MC-NBFX] 2.1.2
 * Longer forms than needed are read (81 00 is 1) and never written.
 */
export const MOST_SIZE_BYTES = 5

/** Adds group `i` (0 … 4) to a number; the caller goes on while `byte` has its top bit. Throws badFrame above 2^31-1, so no sixth byte can come. */
export function addGroup (size: number, byte: number, i: number): number {
  // Tested before it is shifted: the fifth group would run into the sign.
  if (i === 4 && byte > 0x07) throw new SoaError('badFrame', { why: 'a size above 2147483647', framingFault: '' })
  return size | (byte & 0x7f) << 7 * i
}

export const sizeBytes = (size: number): number => size < 0x80 ? 1 : size < 0x4000 ? 2 : size < 0x20_0000 ? 3 : size < 0x1000_0000 ? 4 : 5

/** Writes a size at `at`; answers the place behind it. The caller has seen to the room. */
export function writeSize (into: Uint8Array, at: number, size: number): number {
  for (; size > 0x7f; size >>>= 7) into[at++] = (size & 0x7f) | 0x80
  into[at++] = size
  return at
}
