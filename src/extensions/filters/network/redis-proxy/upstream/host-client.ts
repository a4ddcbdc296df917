// A connection to one host. Commands follow each other without waiting; the host replies in the same order.

import {
  type Cluster,
  type ClusterHost,
  ClusterStats,
  getLogger,
  HostStats,
  NoRoomError,
  onOneLine,
  PipelinedSocket,
  type PipelinedSocketEvents,
  ReadFrom,
  Timer,
} from '../../../../sdk.js';
import type { Credentials } from '../cluster-options.js';
import { HeldBytesError } from '../resp/held-bytes.js';
import { isErrorReply, isOldNull, ReplyReader } from '../resp/reply-reader.js';
import { RespError } from '../resp/resp-scanner.js';
import { NULL_REPLY, textCommand } from '../resp/write.js';
import { sendBytes } from '../send-bytes.js';
import type { CommandCounts } from './command-counts.js';

const logger = getLogger('redis');

/** What waits for the reply of a host. */
export interface ReplyReceiver {
  /** The reply is valid until the call returns. */
  replied(reply: Uint8Array): void;
  /** The host does not reply. */
  failed(): void;
}

export interface HostClientSettings {
  /** op_timeout. */
  readonly timeoutMs: number;
  /** Commands are sent when this many bytes are waiting, or when the first one has waited for flushMs; 0: at once. */
  readonly flushBytes: number;
  readonly flushMs: number;
  /** Unless it is the primary, connections begin with READONLY, so that replicas of a Redis cluster answer reads. */
  readonly readFrom: ReadFrom;
  /** Connections begin with HELLO 3, and end if the host does not accept it. */
  readonly usesResp3: boolean;
  readonly countsCommands: boolean;
  /** Of each cluster, hosts that are not its own but that redirections lead to. */
  readonly maxUnknownHosts: number;
}

/** A client that sends no more commands until the host accepts bytes. */
export interface BlockedSender {
  hostDrained(host: HostClient): void;
}

interface PendingReply {
  readonly receiver: ReplyReceiver;
  readonly counts: CommandCounts | undefined;
  readonly startMs: number;
  /** Bytes that it takes until the reply. */
  readonly cost: number;
}

/** For outlier detection, every reply is a success. */
const REPLIED = 200;

/** Memory of a command without a reply, besides its bytes. */
const COMMAND_COST = 512;
/** Senders wait once the commands without a reply take more bytes than this, until they take half of it. */
const HIGH_COST = 8 * 1024 * 1024;
/** More commands fail: senders may have left without their replies. */
const MAX_COST = 64 * 1024 * 1024;

/** Hosts that a warning names. */
const REFUSED = new WeakSet<ClusterHost>();

const DISCARDED: ReplyReceiver = { replied() {}, failed() {} };
const READONLY = textCommand('readonly');

export class HostClient implements PipelinedSocketEvents {
  readonly cluster: Cluster;
  readonly host: ClusterHost;
  readonly #settings: HostClientSettings;
  readonly #socket: PipelinedSocket | undefined;
  readonly #replies: ReplyReader;
  /** In the order of the commands. Those before #next have their replies. */
  #pending: PendingReply[] = [];
  #next = 0;
  /** Commands that are not sent yet, because it is not connected or others may follow. */
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  readonly #timeout = new Timer<HostClient>(this, timedOut);
  readonly #flush = new Timer<HostClient>(this, flushDue);
  readonly #blocked = new Set<BlockedSender>();
  /** Of the commands without a reply. */
  #cost = 0;
  #isSocketBlocked = false;
  #hasHighCost = false;
  #isClosed = false;
  #closesWhenIdle = false;
  #closed: (() => void) | undefined;
  /** Gets the reply to HELLO 3. */
  #greeting: ReplyReceiver | undefined;

  constructor(
    cluster: Cluster,
    host: ClusterHost,
    settings: HostClientSettings,
    credentials: Credentials | undefined,
    closed?: () => void,
  ) {
    this.cluster = cluster;
    this.host = host;
    this.#settings = settings;
    this.#closed = closed;
    this.#replies = new ReplyReader(cluster.thread.memory.outside);
    this.#socket = PipelinedSocket.connect(this, cluster, host);
    this.#isClosed = this.#socket === undefined;
    if (this.#isClosed) return;
    if (settings.usesResp3) this.#greet(credentials);
    else if (credentials !== undefined) {
      const { password, username } = credentials;
      this.#queue(username === '' ? textCommand('auth', password) : textCommand('auth', username, password), DISCARDED);
    }
    if (settings.readFrom !== ReadFrom.Primary) this.#queue(READONLY, DISCARDED);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get hasRequests(): boolean {
    return this.#next < this.#pending.length;
  }

  /** The host accepts bytes, or replies, more slowly than commands come. */
  get isBlocked(): boolean {
    return this.#isSocketBlocked || this.#hasHighCost;
  }

  /** Calls sender.hostDrained() when the host is no longer blocked, or is gone. */
  whenDrained(sender: BlockedSender): void {
    this.#blocked.add(sender);
  }

  /** Called when the sender is gone. */
  forget(sender: BlockedSender): void {
    this.#blocked.delete(sender);
  }

  /** Sends a command, whose receiver gets the reply or failed(). Returns false, without a call, if the command cannot be sent. */
  send(command: Buffer, receiver: ReplyReceiver, counts?: CommandCounts): boolean {
    if (this.#isClosed || this.#cost > MAX_COST) return false;
    this.cluster.requestBegan(this.host);
    counts?.began();
    this.#queue(command, receiver, counts);
    return true;
  }

  /** Ends the connection when all commands have their replies. */
  drain(): void {
    this.#closesWhenIdle = true;
    if (!this.hasRequests) this.close();
  }

  /** Ends the connection. Commands without a reply fail. */
  close(): void {
    if (this.#isClosed) return;
    this.#socket?.close();
    this.#ended();
  }

  #queue(command: Buffer, receiver: ReplyReceiver, counts?: CommandCounts): void {
    const { clock, wheel } = this.cluster.thread;
    const cost = command.length + COMMAND_COST;
    this.#pending.push({ receiver, counts, startMs: clock.monotonicMs, cost });
    this.#cost += cost;
    if (this.#cost > HIGH_COST) this.#hasHighCost = true;
    this.#unsent.push(command);
    this.#unsentBytes += command.length;
    if (this.#socket?.isConnected !== true) return;
    if (!this.#timeout.isScheduled) wheel.schedule(this.#timeout, this.#settings.timeoutMs);
    if (this.#unsentBytes >= this.#settings.flushBytes) return this.flush();
    if (!this.#flush.isScheduled) wheel.schedule(this.#flush, this.#settings.flushMs);
  }

  #greet(credentials: Credentials | undefined): void {
    const authentication = credentials && ['AUTH', credentials.username || 'default', credentials.password];
    const { host } = this;
    const replied = (reply: Uint8Array) => {
      if (!isErrorReply(reply)) return;
      if (!REFUSED.has(host)) logger.warning(`host ${host.address} does not accept HELLO 3: ${shownReply(reply)}`);
      REFUSED.add(host);
      this.close();
    };
    this.#greeting = { replied, failed() {} };
    this.#queue(textCommand('HELLO', '3', ...(authentication ?? [])), this.#greeting);
  }

  /** Sends the commands that wait for others. */
  flush(): void {
    const { thread } = this.cluster;
    thread.wheel.cancel(this.#flush);
    if (this.#isClosed || this.#socket?.isConnected !== true) return;
    const unsent = this.#unsent;
    this.#unsent = [];
    this.#unsentBytes = 0;
    try {
      for (const command of unsent) sendBytes(thread.memory, command, this.#socket);
    } catch (error) {
      // What follows a part of a command would be read as the rest of it.
      this.close();
      if (!(error instanceof NoRoomError)) throw error;
    }
  }

  timedOut(): void {
    this.cluster.stats.increment(ClusterStats.at.upstream_rq_timeout);
    this.host.stats.increment(HostStats.at.rq_timeout);
    this.host.monitor?.timedOut();
    this.close();
  }

  // ── PipelinedSocketEvents ────────────────────────────────────────────────────────────────────────────────────────

  socketConnected(): void {
    if (this.hasRequests) this.cluster.thread.wheel.schedule(this.#timeout, this.#settings.timeoutMs);
    this.flush();
  }

  socketData(offset: number, length: number): void {
    try {
      this.#replies.add(this.cluster.thread.memory.bytes, offset, length);
      for (let reply = this.#replies.next(); reply !== undefined; reply = this.#replies.next()) {
        if (!this.hasRequests) throw new RespError('a reply to no command');
        this.#received(reply);
        if (this.#isClosed) return;
      }
      this.#replies.keep();
    } catch (error) {
      if (!(error instanceof RespError) && !(error instanceof HeldBytesError)) throw error;
      this.cluster.stats.increment(ClusterStats.at.upstream_cx_protocol_error);
      this.host.monitor?.failed();
      this.close();
    }
  }

  socketClosed(): void {
    this.#ended();
  }

  socketBlocked(): void {
    this.#isSocketBlocked = true;
  }

  socketDrained(): void {
    this.#isSocketBlocked = false;
    if (!this.isBlocked) this.#releaseSenders();
  }

  #received(reply: Uint8Array): void {
    const { clock, wheel } = this.cluster.thread;
    const pending = this.#pending[this.#next++]!;
    this.#cost -= pending.cost;
    if (pending.receiver !== DISCARDED && pending.receiver !== this.#greeting) {
      this.cluster.requestEnded(this.host);
      pending.counts?.ended(!isErrorReply(reply), clock.monotonicMs - pending.startMs);
      this.host.monitor?.answered(REPLIED);
      this.host.stats.increment(isErrorReply(reply) ? HostStats.at.rq_error : HostStats.at.rq_success);
    }
    if (!this.hasRequests) {
      this.#pending = [];
      this.#next = 0;
      wheel.cancel(this.#timeout);
    } else {
      if (this.#next > COMPACTED) this.#compact();
      wheel.reschedule(this.#timeout, this.#settings.timeoutMs);
    }
    try {
      pending.receiver.replied(this.#settings.usesResp3 && isOldNull(reply) ? NULL_REPLY : reply);
    } catch (error) {
      reportFault(error);
    }
    if (this.#hasHighCost && this.#cost <= HIGH_COST / 2) {
      this.#hasHighCost = false;
      if (!this.isBlocked) this.#releaseSenders();
    }
    if (this.#closesWhenIdle && !this.hasRequests) this.close();
  }

  #compact(): void {
    this.#pending = this.#pending.slice(this.#next);
    this.#next = 0;
  }

  #ended(): void {
    this.#isClosed = true;
    this.#isSocketBlocked = this.#hasHighCost = false;
    this.#cost = 0;
    const { clock, wheel } = this.cluster.thread;
    wheel.cancel(this.#timeout);
    wheel.cancel(this.#flush);
    this.#replies.clear();
    this.#unsent = [];
    const pending = this.#pending.slice(this.#next);
    this.#pending = [];
    this.#next = 0;
    this.#closed?.();
    for (const { counts, receiver, startMs } of pending) {
      if (receiver === DISCARDED || receiver === this.#greeting) continue;
      this.cluster.requestEnded(this.host);
      counts?.ended(false, clock.monotonicMs - startMs);
      try {
        receiver.failed();
      } catch (error) {
        reportFault(error);
      }
    }
    this.#releaseSenders();
  }

  #releaseSenders(): void {
    const senders = [...this.#blocked];
    this.#blocked.clear();
    for (const sender of senders) sender.hostDrained(this);
  }
}

function shownReply(reply: Uint8Array): string {
  return onOneLine(Buffer.from(reply.subarray(1, MAX_SHOWN)).toString('latin1').trimEnd());
}

const MAX_SHOWN = 128;

/** Reports an exception of a receiver. Those of other replies are not affected. */
function reportFault(error: unknown): void {
  logger.error({ err: error }, 'a reply of a host was lost in an exception');
}

/** So many replied entries are dropped at once. */
const COMPACTED = 1024;

function timedOut(client: HostClient): void {
  client.timedOut();
}

function flushDue(client: HostClient): void {
  client.flush();
}
