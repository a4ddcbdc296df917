// Shared data and queues of the VMs of one thread.

import { Result } from '../abi.js';
import type { SharedState } from '../vm/services.js';

/** Of all keys and values of one thread. */
const MAX_BYTES = 16 * 1024 * 1024;
/** What an entry needs besides its bytes. */
const ENTRY_BYTES = 64;
const MAX_QUEUES = 1000;

interface Item {
  readonly value: Buffer;
  readonly cas: number;
}

interface Queue {
  readonly items: Buffer[];
  /** The VM that has registered it last; undefined: it has ended. */
  owner: object | undefined;
  isReady: ((token: number) => void) | undefined;
}

export class ThreadState implements SharedState {
  readonly #data = new Map<string, Item>();
  readonly #tokens = new Map<string, number>();
  readonly #queues = new Map<number, Queue>();
  #bytes = 0;
  #cas = 0;
  #lastToken = 0;

  get(vmId: string, key: string): Item | Result {
    return this.#data.get(keyOf(vmId, key)) ?? Result.NotFound;
  }

  set(vmId: string, key: string, value: Buffer, cas: number): Result {
    const name = keyOf(vmId, key);
    const before = this.#data.get(name);
    if (before !== undefined && cas !== 0 && before.cas !== cas) return Result.CasMismatch;
    const growth = value.length - (before?.value.length ?? -name.length - ENTRY_BYTES);
    if (!this.#reserve(growth)) return Result.InternalFailure;
    this.#cas = (this.#cas + 1) >>> 0 || 1;
    this.#data.set(name, { value: Buffer.from(value), cas: this.#cas });
    return Result.Ok;
  }

  registerQueue(vmId: string, name: string, owner: object, isReady: (token: number) => void): number | undefined {
    const key = keyOf(vmId, name);
    const known = this.#tokens.get(key);
    if (known !== undefined) {
      Object.assign(this.#queues.get(known)!, { owner, isReady });
      return known;
    }
    if (this.#queues.size >= MAX_QUEUES || !this.#reserve(key.length + ENTRY_BYTES)) return undefined;
    const token = ++this.#lastToken;
    this.#tokens.set(key, token);
    this.#queues.set(token, { items: [], owner, isReady });
    return token;
  }

  resolveQueue(vmId: string, name: string): number | undefined {
    return this.#tokens.get(keyOf(vmId, name));
  }

  enqueue(token: number, value: Buffer): Result {
    const queue = this.#queues.get(token);
    if (queue === undefined) return Result.NotFound;
    if (!this.#reserve(value.length + ENTRY_BYTES)) return Result.InternalFailure;
    queue.items.push(Buffer.from(value));
    setImmediate(() => queue.isReady?.(token));
    return Result.Ok;
  }

  dequeue(token: number): Buffer | Result {
    const queue = this.#queues.get(token);
    if (queue === undefined) return Result.NotFound;
    const item = queue.items.shift();
    if (item === undefined) return Result.Empty;
    this.#bytes -= item.length + ENTRY_BYTES;
    return item;
  }

  leave(owner: object): void {
    for (const queue of this.#queues.values()) if (queue.owner === owner) queue.owner = queue.isReady = undefined;
  }

  forget(vmId: string): void {
    const prefix = keyOf(vmId, '');
    for (const [key, { value }] of this.#data) {
      if (!key.startsWith(prefix)) continue;
      this.#data.delete(key);
      this.#bytes -= key.length + ENTRY_BYTES + value.length;
    }
    for (const [key, token] of this.#tokens) {
      if (!key.startsWith(prefix)) continue;
      this.#bytes -= key.length + ENTRY_BYTES;
      for (const item of this.#queues.get(token)!.items) this.#bytes -= item.length + ENTRY_BYTES;
      this.#tokens.delete(key);
      this.#queues.delete(token);
    }
  }

  #reserve(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_BYTES) return false;
    this.#bytes += bytes;
    return true;
  }
}

/** Lengths keep two parts apart. */
function keyOf(vmId: string, key: string): string {
  return `${vmId.length}:${vmId}${key}`;
}
