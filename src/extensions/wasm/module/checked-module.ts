// Checks a module before V8 compiles it, as Envoy does, and gives its memory and tables a maximum.

import { type AbiVersion, abiVersionOf, type Signature, signatureOf, signatureText } from '../abi.js';
import { ByteReader, CORRUPTED, leb128, ModuleError, type Section, SectionId, sectionsOf } from './sections.js';

/** 256 MiB, the largest memory of a module. */
export const MAX_PAGES = 4096;
/** Of all tables together, 8 bytes each. */
export const MAX_TABLE_ENTRIES = 1024 * 1024;
const MAX_TABLES = 16;
/** Larger modules take V8 seconds to compile. */
export const MAX_MODULE_BYTES = 64 * 1024 * 1024;

export interface CheckedModule {
  /** The module without what could grow without a limit. */
  readonly bytes: Buffer;
  readonly abi: AbiVersion;
  readonly hasMemory: boolean;
  readonly imports: readonly FunctionImport[];
}

export interface FunctionImport {
  readonly module: string;
  readonly name: string;
  readonly signature: Signature;
}

/** Returns the signature of a host function; undefined: there is none of that name. */
export type HostSignatures = (module: string, name: string, abi: AbiVersion) => Signature | undefined;

/** Throws a ModuleError, with Envoy's text where Envoy has one. */
export function checkModule(bytes: Buffer, signatures: HostSignatures): CheckedModule {
  if (bytes.length > MAX_MODULE_BYTES) throw new ModuleError(`it is longer than ${MAX_MODULE_BYTES} bytes`);
  const sections = sectionsOf(bytes);
  const read = <T>(id: SectionId, item: (reader: ByteReader) => T): T[] => itemsOf(bytes, sections, id, item);
  const types = read(SectionId.Type, functionType);
  const typeAt = (index: number): Signature => {
    const type = types[index];
    if (type === undefined) throw new ModuleError(CORRUPTED);
    return type;
  };
  const imports = read(SectionId.Import, (reader) => functionImport(reader, typeAt));
  const functions = [
    ...imports.map(({ signature }) => signature),
    ...read(SectionId.Function, (reader) => typeAt(reader.u32())),
  ];
  const exported = read(SectionId.Export, (reader) => ({
    name: reader.name(),
    kind: reader.byte(),
    index: reader.u32(),
  }));
  const abi = exported.map(({ name }) => abiVersionOf(name)).find((version) => version !== undefined);
  if (abi === undefined) throw new ModuleError('Missing or unknown Proxy-Wasm ABI version');
  const named = new Map(exported.filter(({ kind }) => kind === 0).map(({ name, index }) => [name, functions[index]]));
  checkImports(imports, abi, signatures);
  checkExports(named, abi);
  const memories = read(SectionId.Memory, (reader) => reader.limits());
  if (memories.length > 1) throw new ModuleError('it has several memories');
  const hasMemory = exported.some(({ name, kind }) => kind === 2 && name === 'memory');
  return { bytes: bounded(bytes, sections), abi, hasMemory, imports };
}

function itemsOf<T>(bytes: Buffer, sections: readonly Section[], id: SectionId, item: (reader: ByteReader) => T): T[] {
  const items: T[] = [];
  for (const section of sections) {
    if (section.id !== id) continue;
    const reader = new ByteReader(bytes, section.content, section.end);
    // A count beyond the bytes that are there ends with an error at their end.
    for (let left = reader.u32(); left > 0; left--) items.push(item(reader));
  }
  return items;
}

function functionType(reader: ByteReader): Signature {
  // Types of the garbage-collected heap would grow without a limit.
  if (reader.byte() !== 0x60) throw new ModuleError('it has types that are no functions');
  return `${valueTypes(reader)}>${valueTypes(reader)}`;
}

function valueTypes(reader: ByteReader): string {
  let types = '';
  for (let left = reader.u32(); left > 0; left--) {
    const type = reader.byte();
    if (type === 0x63 || type === 0x64) reader.u32();
    types += VALUE_TYPES.get(type) ?? 'r';
  }
  return types;
}

const VALUE_TYPES: ReadonlyMap<number, string> = new Map([
  [0x7f, 'i'],
  [0x7e, 'l'],
  [0x7d, 'f'],
  [0x7c, 'd'],
]);

function functionImport(reader: ByteReader, typeAt: (index: number) => Signature): FunctionImport {
  const module = reader.name();
  const name = reader.name();
  // The host has no memories, tables and globals.
  if (reader.byte() !== 0)
    throw new ModuleError(`Failed to load Wasm module due to a missing import: ${module}.${name}`);
  return { module, name, signature: typeAt(reader.u32()) };
}

function checkImports(imports: readonly FunctionImport[], abi: AbiVersion, signatures: HostSignatures): void {
  for (const { module, name, signature } of imports) {
    const own = signatures(module, name, abi);
    if (own === undefined)
      throw new ModuleError(`Failed to load Wasm module due to a missing import: ${module}.${name}`);
    if (own === signature) continue;
    const wanted = `want: ${signatureText(signature)}, but host exports: ${signatureText(own)}`;
    throw new ModuleError(`Failed to load Wasm module due to an import type mismatch: ${module}.${name}, ${wanted}`);
  }
}

function checkExports(functions: ReadonlyMap<string, Signature | undefined>, abi: AbiVersion): void {
  for (const [name, signature] of functions) {
    const expected = signatureOf(name, abi);
    if (expected === undefined || expected === signature || signature === undefined) continue;
    // It is called only by modules that have no _initialize().
    if (name === 'main' && !functions.has('_initialize')) continue;
    const wanted = `want: ${signatureText(expected)}, but the module exports: ${signatureText(signature)}`;
    throw new ModuleError(`Bad function signature for: ${name}, ${wanted}`);
  }
  if (!functions.has('malloc') && !functions.has('proxy_on_memory_allocate'))
    throw new ModuleError('Wasm module is missing malloc function.');
}

/** Rewrites the sections of memories and tables with maximums. */
function bounded(bytes: Buffer, sections: readonly Section[]): Buffer {
  const parts: Uint8Array[] = [bytes.subarray(0, 8)];
  for (const section of sections) {
    if (section.id === SectionId.Memory) parts.push(boundedMemory(bytes, section));
    else if (section.id === SectionId.Table) parts.push(boundedTables(bytes, section));
    else parts.push(bytes.subarray(section.start, section.end));
  }
  return Buffer.concat(parts);
}

function boundedMemory(bytes: Buffer, section: Section): Uint8Array {
  const reader = new ByteReader(bytes, section.content, section.end);
  const count = reader.u32();
  const content = [...leb128(count)];
  for (let left = count; left > 0; left--) {
    const { min, max } = reader.limits();
    if (min > MAX_PAGES) throw new ModuleError(`its memory begins with ${min} pages, and Baton allows ${MAX_PAGES}`);
    content.push(1, ...leb128(min), ...leb128(Math.min(max ?? MAX_PAGES, MAX_PAGES)));
  }
  return sectionOf(SectionId.Memory, content);
}

function boundedTables(bytes: Buffer, section: Section): Uint8Array {
  const reader = new ByteReader(bytes, section.content, section.end);
  const count = reader.u32();
  if (count > MAX_TABLES) throw new ModuleError(`it has ${count} tables, and Baton allows ${MAX_TABLES}`);
  const most = Math.floor(MAX_TABLE_ENTRIES / Math.max(count, 1));
  const content = [...leb128(count)];
  for (let left = count; left > 0; left--) {
    const type = reader.byte();
    // References to functions or to host values; others have longer types, or expressions that fill them.
    if (type !== 0x70 && type !== 0x6f) throw new ModuleError('it has a table of a type that is not supported');
    const { min, max } = reader.limits();
    if (min > most) throw new ModuleError(`a table begins with ${min} entries, and Baton allows ${most}`);
    content.push(type, 1, ...leb128(min), ...leb128(Math.min(max ?? most, most)));
  }
  return sectionOf(SectionId.Table, content);
}

function sectionOf(id: SectionId, content: readonly number[]): Uint8Array {
  return Uint8Array.from([id, ...leb128(content.length), ...content]);
}
