// A client of one Redis server, for health checks and questions about a cluster: one command at a time, on a connection that is kept.

import { messageOf } from '../../../common/errors/errors.js';
import type { Credentials } from '../../../extensions/filters/network/redis-proxy/cluster-options.js';
import { HeldBytesError, type Reservations } from '../../../extensions/filters/network/redis-proxy/resp/held-bytes.js';
import { isErrorReply, ReplyReader } from '../../../extensions/filters/network/redis-proxy/resp/reply-reader.js';
import { RespError } from '../../../extensions/filters/network/redis-proxy/resp/resp-scanner.js';
import { textCommand } from '../../../extensions/filters/network/redis-proxy/resp/write.js';
import { Timer } from '../../../io/time/timing-wheel.js';
import type { CallingThread } from '../../../upstream/calling-thread.js';
import type { CheckTarget } from '../../../upstream/health-checks/check-target.js';
import { TcpCheckConnection, type TcpCheckEvents } from '../../../upstream/health-checks/tcp-check-connection.js';
import { PoolFailure } from '../../../upstream/pool-failure.js';

/** The reply, which is valid until the call returns, or why there is none. */
export type RedisResult =
  | { readonly reply: Uint8Array }
  | { readonly reply: undefined; readonly isTimeout: boolean; readonly reason: string };

/** Replies to be kept have at most so many bytes. */
const MAX_REPLY_BYTES = 4 * 1024 * 1024;

export class RedisClient implements TcpCheckEvents {
  readonly #caller: CallingThread;
  readonly #target: CheckTarget;
  readonly #authentication: Buffer | undefined;
  readonly #timer = new Timer<RedisClient>(this, onTimeout);
  readonly #replies = new ReplyReader(limitedTo(MAX_REPLY_BYTES));
  #connection: TcpCheckConnection | undefined;
  #command: Buffer | undefined;
  #onResult: ((result: RedisResult) => void) | undefined;
  /** The next reply is that to AUTH. */
  #isAuthenticating = false;

  constructor(caller: CallingThread, target: CheckTarget, credentials: Credentials | undefined) {
    this.#caller = caller;
    this.#target = target;
    this.#authentication = credentials && authentication(credentials);
  }

  /** Sends a command. The previous one must have its result. `onResult` is called once, perhaps before this returns. */
  request(command: Buffer, timeoutMs: number, onResult: (result: RedisResult) => void): void {
    const { wheel } = this.#caller.begin();
    this.#command = command;
    this.#onResult = onResult;
    wheel.reschedule(this.#timer, timeoutMs);
    if (this.#connection?.isConnected === true) return this.#send(command);
    try {
      this.#connection ??= new TcpCheckConnection(this.#target, this);
    } catch (error) {
      this.#failed(messageOf(error));
    }
  }

  /** Ends the connection. A command under way gets no result. */
  close(): void {
    this.#caller.begin();
    this.#onResult = undefined;
    this.#disconnect();
  }

  timedOut(): void {
    const reason = this.#connection?.isConnected ? 'it does not reply in time' : 'it cannot be connected to in time';
    this.#failed(reason, true);
  }

  // ── TcpCheckEvents ───────────────────────────────────────────────────────────────────────────────────────────────

  connected(): void {
    this.#isAuthenticating = this.#authentication !== undefined;
    if (this.#authentication !== undefined) this.#send(this.#authentication);
    if (this.#command !== undefined) this.#send(this.#command);
  }

  connectFailed(failure: PoolFailure, detail: string): void {
    if (failure === PoolFailure.ConnectTimeout) this.timedOut();
    else this.#failed(detail);
  }

  received(offset: number, length: number): void {
    const { memory } = this.#target.cluster.thread;
    try {
      this.#replies.add(memory.bytes, offset, length);
      let reply = this.#replies.next();
      if (reply !== undefined && this.#isAuthenticating) {
        this.#isAuthenticating = false;
        if (isErrorReply(reply)) return this.#failed('it does not accept the password');
        reply = this.#replies.next();
      }
      if (reply === undefined) this.#replies.keep();
      else this.#replied(reply);
    } catch (error) {
      if (!(error instanceof RespError) && !(error instanceof HeldBytesError)) throw error;
      this.#failed(`its reply is not valid: ${error.message}`);
    }
  }

  lost(reason: string): void {
    this.#failed(reason);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #send(bytes: Buffer): void {
    const { memory } = this.#target.cluster.thread;
    const offset = memory.scratch(bytes.length);
    memory.bytes.set(bytes, offset);
    this.#connection!.send(offset, bytes.length);
  }

  #replied(reply: Uint8Array): void {
    if (this.#onResult === undefined) return this.#disconnect();
    this.#end({ reply });
    if (this.#replies.next() === undefined) this.#replies.keep();
    // A reply to no command.
    else this.#disconnect();
  }

  #failed(reason: string, isTimeout = false): void {
    this.#disconnect();
    this.#end({ reply: undefined, isTimeout, reason });
  }

  #end(result: RedisResult): void {
    const onResult = this.#onResult;
    this.#onResult = this.#command = undefined;
    this.#target.cluster.thread.wheel.cancel(this.#timer);
    onResult?.(result);
  }

  #disconnect(): void {
    this.#target.cluster.thread.wheel.cancel(this.#timer);
    const connection = this.#connection;
    this.#connection = undefined;
    this.#isAuthenticating = false;
    this.#replies.clear();
    connection?.close();
  }
}

function authentication({ password, username }: Credentials): Buffer {
  return username === '' ? textCommand('auth', password) : textCommand('auth', username, password);
}

function limitedTo(limit: number): Reservations {
  let reserved = 0;
  return {
    reserve(bytes) {
      if (reserved + bytes > limit) return false;
      reserved += bytes;
      return true;
    },
    release(bytes) {
      reserved -= bytes;
    },
  };
}

function onTimeout(client: RedisClient): void {
  client.timedOut();
}
