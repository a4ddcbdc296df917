// Writes databases in the MaxMind DB file format, for tests.

import { parseIp } from '../../../../../src/io/addresses/address.js';

export type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value };

const NO_RECORD = -1;

const enum Type {
  Uint16 = 5,
  Uint32 = 6,
  Uint64 = 9,
}

interface Node {
  readonly children: [Node | number, Node | number];
}

/** Returns a database with a record for each network, such as `10.0.0.0/8`. */
export function writeMmdb(networks: Readonly<Record<string, Value>>, epoch = 1_700_000_000): Buffer {
  const data: Buffer[] = [];
  let dataLength = 0;
  const root: Node = { children: [NO_RECORD, NO_RECORD] };
  for (const [network, value] of Object.entries(networks)) {
    const [ip, length] = network.split('/');
    insert(root, bitsOf(ip!, Number(length)), dataLength);
    const encoded = encode(value);
    data.push(encoded);
    dataLength += encoded.length;
  }
  const nodes = listOf(root);
  const tree = Buffer.alloc(nodes.length * 6);
  for (const [index, { children }] of nodes.entries()) {
    for (const [side, child] of children.entries()) {
      const target =
        typeof child !== 'number'
          ? nodes.indexOf(child)
          : child === NO_RECORD
            ? nodes.length
            : nodes.length + 16 + child;
      tree.writeUIntBE(target, index * 6 + side * 3, 3);
    }
  }
  const metadata = map({
    binary_format_major_version: number(Type.Uint16, 2, 2),
    binary_format_minor_version: number(Type.Uint16, 2, 0),
    build_epoch: number(Type.Uint64, 8, epoch),
    database_type: encode('Test'),
    description: encode({ en: 'test' }),
    ip_version: number(Type.Uint16, 2, 6),
    languages: encode(['en']),
    node_count: encode(nodes.length),
    record_size: number(Type.Uint16, 2, 24),
  });
  return Buffer.concat([tree, Buffer.alloc(16), ...data, Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1'), metadata]);
}

function bitsOf(ip: string, length: number): number[] {
  const bytes = parseIp(ip)!;
  const all = bytes.length === 4 ? Uint8Array.from([...new Uint8Array(12), ...bytes]) : bytes;
  const count = bytes.length === 4 ? 96 + length : length;
  return Array.from({ length: count }, (_, bit) => (all[bit >> 3]! >> (7 - (bit & 7))) & 1);
}

function insert(root: Node, bits: readonly number[], place: number): void {
  let node = root;
  for (const bit of bits.slice(0, -1)) {
    let child = node.children[bit]!;
    if (typeof child === 'number') {
      child = { children: [child, child] };
      node.children[bit] = child;
    }
    node = child;
  }
  node.children[bits.at(-1)!] = place;
}

function listOf(root: Node): Node[] {
  const nodes = [root];
  for (const { children } of nodes) for (const child of children) if (typeof child !== 'number') nodes.push(child);
  return nodes;
}

/** Returns a value of the data section. */
export function encode(value: Value): Buffer {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value);
    return Buffer.concat([control(2, bytes.length), bytes]);
  }
  if (typeof value === 'number') {
    return number(Type.Uint32, 4, value);
  }
  if (typeof value === 'boolean') return Buffer.of(value ? 1 : 0, 7);
  if (Array.isArray(value)) return Buffer.concat([control(11, value.length), ...value.map(encode)]);
  return map(Object.fromEntries(Object.entries(value).map(([key, each]) => [key, encode(each)])));
}

function map(entries: Readonly<Record<string, Buffer>>): Buffer {
  const list = Object.entries(entries);
  return Buffer.concat([control(7, list.length), ...list.flatMap(([key, value]) => [encode(key), value])]);
}

function number(type: Type, bytes: number, value: number): Buffer {
  const written = Buffer.alloc(8);
  written.writeBigUInt64BE(BigInt(value));
  return Buffer.concat([control(type, bytes), written.subarray(8 - bytes)]);
}

export function control(type: number, size: number): Buffer {
  const extra = size < 29 ? [] : size < 285 ? [size - 29] : [(size - 285) >> 8, (size - 285) & 255];
  const low = size < 29 ? size : size < 285 ? 29 : 30;
  return type < 8 ? Buffer.of((type << 5) | low, ...extra) : Buffer.of(low, type - 7, ...extra);
}
