// The part of the WebAssembly interface that Baton uses: TypeScript declares it only for browsers.

export interface WasmMemory {
  /** Another one after the memory has grown. */
  readonly buffer: ArrayBuffer;
}

/** A function of a module, or of the host. */
export type WasmFunction = (...values: (number | bigint)[]) => number | bigint | undefined;

/** A compiled module. */
export interface WasmModule {
  readonly [Symbol.toStringTag]: string;
}

export interface WasmInstance {
  readonly exports: Readonly<Record<string, unknown>>;
}

export type WasmImports = Record<string, Record<string, (...values: never[]) => unknown>>;

interface Api {
  readonly Module: new (bytes: Uint8Array) => WasmModule;
  readonly Instance: new (module: WasmModule, imports: WasmImports) => WasmInstance;
}

export const { Module, Instance } = (globalThis as unknown as { readonly WebAssembly: Api }).WebAssembly;
