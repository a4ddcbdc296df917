// The slot of a key in a Redis cluster: CRC-16/XMODEM of its hash tag, modulo the number of slots.

import { SLOTS } from '../../../../sdk.js';

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) !== 0 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

export function slotOf(tag: Uint8Array): number {
  let crc = 0;
  for (let at = 0; at < tag.length; at++) crc = ((crc << 8) & 0xffff) ^ TABLE[(crc >> 8) ^ tag[at]!]!;
  return crc % SLOTS;
}
