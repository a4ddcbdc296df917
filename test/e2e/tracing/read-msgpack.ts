// Reads MessagePack. Integers of 64 bits are bigints.

export function readMsgpack(bytes: Buffer): unknown {
  let at = 0;
  const uint = (length: number) => {
    const value = bytes.readUIntBE(at, length);
    at += length;
    return value;
  };
  const text = (length: number) => {
    at += length;
    return bytes.toString('utf8', at - length, at);
  };
  const list = (count: number) => Array.from({ length: count }, read);
  const map = (count: number) => Object.fromEntries(Array.from({ length: count }, () => [read(), read()]));
  function read(): unknown {
    const type = bytes[at++]!;
    if (type < 0x80) return BigInt(type);
    if (type < 0x90) return map(type & 15);
    if (type < 0xa0) return list(type & 15);
    if (type < 0xc0) return text(type & 31);
    switch (type) {
      case 0xcb:
        at += 8;
        return bytes.readDoubleBE(at - 8);
      case 0xcf:
        at += 8;
        return bytes.readBigUInt64BE(at - 8);
      case 0xd3:
        at += 8;
        return bytes.readBigInt64BE(at - 8);
      case 0xcc:
      case 0xcd:
      case 0xce:
        return BigInt(uint(1 << (type - 0xcc)));
      case 0xd0:
        return BigInt(bytes.readInt8(at++));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return text(uint(1 << (type - 0xd9)));
      case 0xdc:
      case 0xdd:
        return list(uint(2 << (type - 0xdc)));
      case 0xde:
      case 0xdf:
        return map(uint(2 << (type - 0xde)));
      default:
        throw new Error(`unexpected type ${type} at ${at - 1}`);
    }
  }
  return read();
}
