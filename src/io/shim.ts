// The typed face of the native shim: what it offers, and who owns every buffer and descriptor that crosses.
//
// Ownership
// - `memory` (one SharedArrayBuffer a transport) is allocated by JavaScript and lives as long as the transport. The shim
//   writes received bytes into its receive window [0, receiveBytes) and reads sends from anywhere in it.
// - Received bytes belong to JavaScript from the call of `onBatch` until it returns; then the window is written anew.
//   What must live longer is copied by JavaScript.
// - Bytes named by a SEND belong to the shim from the moment the submission is flushed until flush() (or the end of the
//   batch) returns. The shim copies what the kernel did not take, so the range may be reused at once afterwards.
// - `events`, `submissions`, `control` and `clock` are allocated by JavaScript; the shim writes `events` and reads
//   `submissions` only while it runs, never while JavaScript runs. Their buffers must never be transferred: native code
//   keeps their addresses (`memory` is shared memory because that cannot be transferred at all).
// - Descriptors: openListenSocket() and duplicate() give a descriptor to the caller, who gives it back with
//   closeDescriptor(); so do openMeetingSocket(), socketPair() and the descriptors of a received message. watchMessages()
//   takes its descriptor over; sending a descriptor sends a copy. addListener() takes a copy of its own (dup); adopt() takes
//   the descriptor itself, and copyFrozen() gives a copy away.
// - An id names a connection or listener until JavaScript submits CLOSE or RESET (or removeListener): only then, and behind
//   the batch that is being handled, is its slot free for another. An id is slot | generation << ID_SLOT_BITS, a
//   non-negative int32; the shim ignores submissions whose generation is not the slot's current one.

import { loadNative } from '../common/package/native-code.js';
import { packagePath } from '../common/package/package-root.js';

/** Low bits of an id that are the slot: at most 2^20 connections and listeners in a transport. */
export const ID_SLOT_BITS = 20;
export const ID_SLOT_MASK = (1 << ID_SLOT_BITS) - 1;

/** Words of an event record: [id, kind, offset, length]. */
export const EVENT_STRIDE = 4;

/**
 * Event kinds. A connection gets at most one Data event in a batch (of at most 1 MiB, and of its receive limit). Behind
 * its last Data there is at most one End (the peer's FIN; sending goes on), then at most one Reset and nothing more.
 */
export const enum Event {
  /** A new connection `id`. offset: where the peer's sockaddr was written in the receive window; length: its bytes (low 16 bits). The listener's id is in the control word ACCEPTED_BY + index of the event. */
  Accept = 1,
  /** Bytes received: memory[offset, offset+length). */
  Data = 2,
  /** The peer has ended its direction in order (FIN). */
  End = 3,
  /** The connection is dead; length: errno (ECONNRESET, EPIPE, ETIMEDOUT, ENOBUFS for the pending limit …). Before Connected it is a failed connect; offset: a ConnectStep. */
  Reset = 4,
  /** A connect succeeded. */
  Connected = 5,
  /** More than the high watermark is pending: stop sending. offset: pending bytes. */
  Blocked = 6,
  /** Pending fell to the low watermark (half the high one) or below after Blocked. */
  Drained = 7,
  /** accept() failed on listener `id`; length: errno. On EMFILE (also said of the reserve)/ENFILE/ENOBUFS/ENOMEM accepting rests and resumes by itself. */
  AcceptFailed = 8,
  /** A connection with TellGone is closed, for whatever reason; offset: its token. There is no id any more, so that stands for nothing. */
  Gone = 9,
  /** An ordered close with TellLate was cut short because its time was over; offset: its token; length: 1 when all was sent, and only the peer's end was missing. */
  Late = 10,
}

/** Where a connect failed. */
export const enum ConnectStep {
  /** It was under way. */
  Later = 0,
  /** It could not begin. */
  Connect = 1,
  /** It cannot come from the local address. */
  Bind = 2,
}

/** Words of a submission record: [op, id, offset, length]. */
export const SUBMISSION_STRIDE = 4;

/** Submissions. Order is kept for each connection; neighbouring SENDs to one id are gathered into one system call. */
export const enum Op {
  /** Send memory[offset, offset+length). On a connecting connection the bytes are queued. */
  Send = 1,
  /** Ordered close: after pending bytes, given up when the peer takes none of them for `offset` ms; then, when length > 0, end the sending direction and wait until the peer ends, at most `length` ms (so that no RST destroys the last answer). What arrives meanwhile is discarded. Bytes still pending when their time is over are lost with an RST, so that a cut-off answer never looks complete. The id dies at once. */
  Close = 2,
  /** Abort: RST to the peer, pending bytes dropped. The id dies at once. */
  Reset = 3,
  /** Half-close after pending bytes. A SEND behind it ends in a Reset event with EPIPE. */
  Shutdown = 4,
  /** Deliver no more Data (nor End) events until Resume. A connection that breaks meanwhile is still reported (Reset, without its unread bytes). */
  Pause = 5,
  Resume = 6,
  /** Set watermarks: offset is the high watermark in bytes, length the hard limit of pending bytes (0: no limit). */
  Watermark = 7,
  /** Reserved for the TLS transport socket: offset is a context id, length the bytes already received. Refused today. */
  StartTls = 8,
  /** Set the receive limit: offset bytes. */
  ReceiveLimit = 9,
  /** Gone is to follow when the connection is closed, which may be long after the id has died; offset: its token, above 0. */
  TellGone = 10,
  /** Late is to follow if the time of an ordered close is over; offset: a token, above 0, that many connections may share. Instead of TellGone. */
  TellLate = 11,
  /** On a connection that has delivered nothing yet: Data only shows bytes, which stay. Each time more has come it shows all of them, at most `offset` bytes. A peer's FIN behind bytes comes as End in a later batch; behind Take both come again. A connection that breaks is reported without its bytes. */
  Peek = 12,
  /** Take away `offset` of the bytes that were shown last; what follows is delivered as on any other connection. */
  Take = 13,
}

/** Int32 words of `control`. */
export const enum Control {
  /** JavaScript writes the index of the event it is about to handle. If onBatch throws, the shim reports the exception and goes on behind it. */
  Cursor = 0,
  /** JavaScript writes how many submissions are queued; the shim resets it to 0 when it has taken them. */
  Submissions = 1,
  /** The shim writes before each batch and in flush() how much memory bytes take that the kernel has not taken, of all connections of the thread: in units of 64 KiB. */
  Pending = 2,
  /** The first of `maxEvents` words: listener id of the Accept event with the same index. */
  AcceptedBy = 8,
}

/** Float64 words of `clock`, written by the shim before each batch. */
export const enum ClockWord {
  /** CLOCK_MONOTONIC in milliseconds, with fraction. */
  Monotonic = 0,
  /** CLOCK_REALTIME in milliseconds since the epoch, with fraction. */
  Realtime = 1,
}

export interface TransportOptions {
  /** All bytes that cross: receive window first, then whatever JavaScript lays out. Must be a view of a SharedArrayBuffer. */
  memory: Uint8Array;
  /** Size of the receive window at the start of `memory`. */
  receiveBytes: number;
  /** maxEvents * EVENT_STRIDE words. */
  events: Int32Array;
  /** maxSubmissions * SUBMISSION_STRIDE words. */
  submissions: Int32Array;
  /** Control.AcceptedBy + maxEvents words. */
  control: Int32Array;
  /** At least 2 words, see ClockWord. */
  clock: Float64Array;
  /** Handles events [from, count). Called again with a later `from` after it threw. */
  onBatch(from: number, count: number): void;
  /** High watermark and hard limit of accepted connections until Op.Watermark changes them. */
  highWatermark: number;
  hardLimit: number;
  /** Most bytes that an accepted connection receives at once, until Op.ReceiveLimit changes it; below 4096 it counts as 4096. */
  receiveLimit: number;
  /**
   * Descriptors that are left to whatever else this process opens, of a small RLIMIT_NOFILE at most an eighth: with fewer of them
   * free connect() and adopt() fail as if there were none (EMFILE), and with fewer than twice as many accepting rests.
   */
  reserve: number;
}

/** What a connection has come to, apart from its descriptor. */
export interface ConnectionProgress {
  /** Bytes that were sent and that the kernel has not taken. */
  readonly pending: Uint8Array;
  /** The peer's end has been delivered. */
  readonly ended: boolean;
  /** The sending direction ends behind the pending bytes, or has ended. */
  readonly finAsked: boolean;
}

export interface FrozenConnection extends ConnectionProgress {
  readonly fd: number;
}

/** How a connection begins that another transport has had. */
export interface Adoption extends ConnectionProgress {
  readonly highWatermark: number;
  readonly hardLimit: number;
  readonly receiveLimit: number;
  /** As after Op.Pause. */
  readonly paused: boolean;
  /** As after freeze(): thaw() begins it. */
  readonly frozen: boolean;
}

export interface NativeTransport {
  /** Accepts on a copy of `fd`. `contended`: other threads accept on the same socket, so only a few connections are taken at a time. Returns the listener's id. */
  addListener(fd: number, contended: boolean): number;
  /** Stops (false) or restarts (true) accepting; connections stay in the kernel's queue meanwhile. */
  setAccepting(listener: number, accepting: boolean): void;
  /**
   * Takes the listener out of the epoll set and closes its copy, with `acceptRest` after accepting what is still queued:
   * those Accept events come in the next batches, and counts().listeners falls when the queue is empty. Never shutdown().
   */
  removeListener(listener: number, acceptRest: boolean): void;
  /** Starts a non-blocking connect to a raw sockaddr, from `local` when given. Returns the connection's id; failure comes as a Reset event. */
  connect(
    remote: Uint8Array,
    local: Uint8Array | undefined,
    highWatermark: number,
    hardLimit: number,
    receiveLimit: number,
  ): number;
  /**
   * Takes over a connected socket, `as` another transport has left it; absent: nothing is pending, and the limits are those of
   * accepted connections. With more than the high watermark pending it counts as blocked: Drained follows. Returns the
   * connection's id. When it throws, the descriptor is still the caller's.
   */
  adopt(fd: number, as?: Adoption): number;
  /**
   * Takes a connection out of the epoll set, so that another transport may go on with it: it has no events from now on, what
   * is sent is queued, and closing it closes this descriptor alone. Called when no event of the batch is left to be handled,
   * after flush(). False when it is not connected, or broken.
   */
  freeze(id: number): boolean;
  /**
   * A frozen connection as another transport needs it; the descriptor is a copy that belongs to the caller. Throws an Error with
   * `code`: ENOENT when it is not frozen, or what was sent since has broken it.
   */
  copyFrozen(id: number): FrozenConnection;
  /** A frozen connection goes on here as if nothing had happened: what has come meanwhile is delivered. */
  thaw(id: number): boolean;
  /** Closes this transport's descriptor of a frozen connection, which whoever has a copy does not notice. The id dies. */
  letGo(id: number): boolean;
  /** Carries out the queued submissions now. Not needed inside onBatch: its end flushes. Throws a TypeError for a submission that makes no sense, after carrying out the others. */
  flush(): void;
  /** Raw sockaddr of the connection's own end (getsockname). Empty for a stale id. */
  localAddress(id: number): Uint8Array;
  /** Bytes accepted from JavaScript that the kernel has not taken yet. */
  pendingBytes(id: number): number;
  /**
   * TCP keepalive for a connection; what is absent stays as the kernel has it. Does nothing to a stale id and to a Unix socket.
   * Throws an Error with `code` for values that the kernel does not take.
   */
  keepAlive(id: number, settings: Keepalive): void;
  /** Open connections, listeners, connections in ordered close. */
  counts(): { connections: number; listeners: number; closing: number };
  /** Whether a listener has told AcceptFailed and nobody was accepted at it since, though somebody waits. */
  isStarved(): boolean;
  /** Closes every descriptor without events. Also done when the thread ends. */
  close(): void;
}

/** Times in whole seconds. */
export interface Keepalive {
  readonly idle?: number | undefined;
  readonly interval?: number | undefined;
  readonly probes?: number | undefined;
}

export interface ListenSocketOptions {
  reusePort: boolean;
  freebind: boolean;
  transparent: boolean;
  /** For IPv6 addresses: refuse IPv4-mapped peers. */
  v6Only: boolean;
  /** For accepted connections; absent: off. */
  keepalive?: Keepalive;
}

/** What a listen socket is, whoever has made it. */
export interface ListenerFacts {
  /** Raw sockaddr that it is bound to. */
  readonly address: Uint8Array;
  /** Further sockets can be bound there. */
  readonly reusePort: boolean;
  /** As ListenSocketOptions.v6Only; false unless it is an IPv6 socket. */
  readonly v6Only: boolean;
}

/** Who sent a message, as the kernel vouches for it. A sender of another user namespace shows the overflow uid 65534. */
export interface Credentials {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

/** What happens on a message socket. An exception is reported as uncaught; the socket goes on. */
export interface MessageSocketEvents {
  /** One message, with descriptors that belong to the receiver now. `credentials`: on meeting sockets. */
  onMessage(bytes: Uint8Array, fds: readonly number[], credentials: Credentials | undefined): void;
  /** What send() or sendTo() refused may be tried again. */
  onWritable(): void;
  /**
   * A message is lost with its descriptors, and the socket goes on. EMSGSIZE: it was above the limits; EMFILE: it brought
   * descriptors that this process may not open. Meeting sockets keep one in reserve for it.
   */
  onLost?(errno: number, credentials: Credentials | undefined): void;
  /**
   * The conversation is over, and the socket closed: 0 when the peer has ended it, otherwise an errno (of two connected
   * sockets those of onLost() too where there is none: the peer relies on what it has sent).
   */
  onEnd(errno: number): void;
}

/** One message at a time over a Unix socket; at most 64 KiB and 64 descriptors. It keeps the thread alive until it is closed. */
export interface NativeMessageSocket {
  /** Sends one message whole, with copies of `fds`. False when the socket takes none now. Throws an Error with `code`. */
  send(bytes: Uint8Array, fds: readonly number[]): boolean;
  /** As send(), from a meeting socket to that raw sockaddr. ECONNREFUSED or ENOENT: nobody is there. */
  sendTo(address: Uint8Array, bytes: Uint8Array, fds: readonly number[]): boolean;
  close(): void;
}

/** A file that is open; the end of the thread closes it too. */
export interface NativeFile {
  /** For node:fs, but not for its close(). */
  readonly fd: number;
  /** Rejects with what the kernel reports, some failed writes among that. What is closed already is left alone. */
  close(): Promise<void>;
}

export interface NativeShim {
  createTransport(options: TransportOptions): NativeTransport;
  /** socket() and bind() to a raw sockaddr, non-blocking and close-on-exec, not yet listening. Throws an Error with `code` (EADDRINUSE …). */
  openListenSocket(address: Uint8Array, options: ListenSocketOptions): number;
  /** listen(). Throws an Error with `code`. */
  listen(fd: number, backlog: number): void;
  /** Raw sockaddr that `fd` is bound to. */
  boundAddress(fd: number): Uint8Array;
  /**
   * Looks at a listen socket that another process has made, and makes it non-blocking. Throws an Error with `code`: ENOTSOCK,
   * EPROTOTYPE for what is no TCP or Unix stream socket, EINVAL for one that does not listen.
   */
  prepareListener(fd: number): ListenerFacts;
  duplicate(fd: number): number;
  closeDescriptor(fd: number): void;
  /**
   * Binds a datagram socket of a Unix address, to meet others at. `mode`: the permissions that its file, if it has one, is made with,
   * whatever the umask; 0600 when left out. Throws an Error with `code` (EADDRINUSE …).
   */
  openMeetingSocket(address: Uint8Array, mode?: number): number;
  /** Two connected sockets for messages in order (SOCK_SEQPACKET): one is given away, its end is noticed by the other. */
  socketPair(): [number, number];
  /**
   * Takes over `fd` (of the two calls above, or received) and listens to it on this thread's loop. Throws an Error with `code`, and
   * leaves `fd` to the caller: EPROTOTYPE when it is to be one end of a conversation, and is no SOCK_SEQPACKET.
   */
  watchMessages(fd: number, events: MessageSocketEvents, isConversation?: boolean): NativeMessageSocket;
  /** This process gets `signal` when the thread that started it ends (PR_SET_PDEATHSIG); 0 takes that back. */
  endWithParent(signal: number): void;
  /** Takes the status of a child that has ended, so that it is no zombie any longer; false when it still runs or is none. */
  reap(pid: number): boolean;
  /** Collects the calling thread's garbage and gives the pages back to the kernel: about 3 ms for each megabyte in use. */
  collectGarbage(): void;
  /** Gives memory that the C library holds and nobody uses back to the kernel. */
  trimMemory(): void;
  /**
   * Gives the pages that lie wholly in memory[offset, offset + length) back to the kernel; their bytes are 0 when they are used again.
   * `memory` is a view of a SharedArrayBuffer. Throws a RangeError for a range outside of it, an Error with `code` when the kernel
   * refuses.
   */
  releasePages(memory: Uint8Array, offset: number, length: number): void;
  /** The kernel's id of the calling thread (gettid), as log lines show it. */
  threadId(): number;
  /** CPUs that the calling thread may run on: its affinity mask, however many CPUs the machine has. Throws an Error with `code`. */
  allowedProcessors(): number;
  /** Lets the kernel write a core file when the process crashes (PR_SET_DUMPABLE). Throws an Error with `code`. */
  enableCoreDump(): void;
  /**
   * Opens a file to write to, non-blocking, or makes one with mode 0644 at most. A link in a directory to which all users may write
   * is followed only if root or this process's user owns it; a file there that another user has put or linked is refused. Throws an
   * Error with `code`: EPERM for these, ENXIO for a pipe that nobody reads.
   */
  openOutput(path: string, appends: boolean): NativeFile;
  /** The same on a thread of libuv's. */
  openOutputLater(path: string, appends: boolean): Promise<NativeFile>;
  /**
   * Replaces what a file holds: a regular one is written beside and renamed, or written in place where that is not allowed. Follows,
   * refuses and throws as openOutput().
   */
  replaceFile(path: string, bytes: Uint8Array): void;
  /** Throws what openOutput() would, as far as that can be seen without opening or making anything. */
  checkOutput(path: string): void;
  /** Sets the permissions of the file of a Unix socket; ENOTSOCK for any other. Follows and throws as openOutput(). */
  setSocketMode(path: string, mode: number): void;
}

/**
 * Loads the shim; each thread gets an instance of its own.
 * @throws BatonError INSTALLATION_BROKEN
 */
export function loadShim(): NativeShim {
  const directory = process.env['BATON_SHIM_BUILD'] ?? 'native-shim/build/Release';
  return loadNative('native-shim', packagePath(directory, 'shim.node')) as NativeShim;
}
