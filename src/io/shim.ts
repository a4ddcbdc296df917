// The typed interface of the native shim, and the ownership of every buffer and descriptor that crosses it.
//
// Ownership
// - `memory` (one SharedArrayBuffer for each transport) is allocated by JavaScript and lives as long as the transport. The shim writes
// received bytes into its receive window [0, receiveBytes) and reads sends from anywhere in it.
// - Received bytes belong to JavaScript from the call of `onBatch` until it returns; then the window is overwritten. JavaScript copies what
// must live longer.
// - Bytes of a SEND belong to the shim from the flush of the submission until flush() (or the end of the batch) returns. The shim copies
// what the kernel did not accept, so the range may be reused at once afterwards.
// - `events`, `submissions`, `control` and `clock` are allocated by JavaScript; the shim writes `events` and reads `submissions` only while
// it runs, never while JavaScript runs. Their buffers must never be transferred: native code keeps their addresses (`memory` is shared
// memory because that cannot be transferred at all).
// - Descriptors: openListenSocket(), duplicate(), openMeetingSocket(), socketPair() and streamPair() return descriptors that the caller owns and closes
// with closeDescriptor(), as it does the descriptors of a received message. watchMessages() and adopt() take ownership of their descriptor.
// Sending a descriptor sends a copy, addListener() makes a copy of its own (dup), and copyFrozen() returns a copy.
// - An ID names a connection or listener until JavaScript submits CLOSE or RESET (or calls removeListener). Only then, and after the
// current batch, is its slot free for another one. An id is slot | generation << ID_SLOT_BITS, a non-negative int32; the shim ignores
// submissions whose generation is not the slot's current one.

import { loadNative } from '../common/package/native-code.js';
import { packagePath } from '../common/package/package-root.js';

/** The folder of the compiled modules. */
export const BUILD_FOLDER = process.env['BATON_SHIM_BUILD'] ?? 'native-shim/build/Release';

/** Number of low bits of an ID that are the slot: a transport has at most 2^20 connections and listeners. */
export const ID_SLOT_BITS = 20;
export const ID_SLOT_MASK = (1 << ID_SLOT_BITS) - 1;

/** Words of an event record: [id, kind, offset, length]. */
export const EVENT_STRIDE = 4;

/**
 * Event kinds. A connection gets at most one Data event in a batch (of at most 1 MiB and its receive limit). After its last Data there is
 * at most one End (the peer's FIN; sending remains possible), then at most one Reset and nothing more.
 */
export const enum Event {
  /**
   * A new connection `id`. offset: where the peer's sockaddr is in the receive window; length: its bytes (low 16 bits). The listener's ID is
   * in the control word AcceptedBy + index of the event.
   */
  Accept = 1,
  /** Bytes received: memory[offset, offset+length). */
  Data = 2,
  /** The peer has half-closed (FIN). */
  End = 3,
  /**
   * The connection is dead; length: errno (ECONNRESET, EPIPE, ETIMEDOUT, ENOBUFS for the pending limit, EPROTO if TLS has failed …). Before Connected, the connect
   * failed; offset: a ConnectStep.
   */
  Reset = 4,
  /** A connect succeeded. */
  Connected = 5,
  /** Pending bytes exceed the high watermark: stop sending. offset: pending bytes. */
  Blocked = 6,
  /** After Blocked, pending bytes have fallen to the low watermark (half the high one) or below. */
  Drained = 7,
  /**
   * accept() failed on listener `id`; length: errno. On EMFILE (also when only the reserve is left), ENFILE, ENOBUFS and ENOMEM accepting
   * stops for a while and resumes by itself.
   */
  AcceptFailed = 8,
  /**
   * A connection with NotifyGone has been closed, for any reason; offset: its token; length: 1 if an orderly close has dropped bytes after its
   * timeout. The ID is meaningless.
   */
  Gone = 9,
  /**
   * An orderly close with NotifyLate was cut short by its timeout; offset: its token; length: 1 if everything was sent and only the peer's
   * FIN was missing.
   */
  Late = 10,
  /** A TLS handshake has finished: the next bytes are those of the peer. tlsState() describes the session. */
  Secured = 11,
  /**
   * A TLS handshake has failed, or the peer has ended it; tlsFailure() has the reason. Nothing more follows. Closing the connection sends
   * the alert.
   */
  HandshakeFailed = 12,
}

/** Where a connect failed. */
export const enum ConnectStep {
  /** The connect was in progress. */
  Later = 0,
  /** The connect could not begin. */
  Connect = 1,
  /** Binding to the local address failed. */
  Bind = 2,
}

/** Words of a submission record: [op, id, offset, length]. */
export const SUBMISSION_STRIDE = 4;

/** Submissions. They are carried out in order for each connection; adjacent SENDs to one ID are gathered into one system call. */
export const enum Op {
  /** Send memory[offset, offset+length). On a connecting connection the bytes are queued. */
  Send = 1,
  /**
   * Orderly close: sends pending bytes, as long as the peer reads some every `offset` ms. Then, if length > 0, half-closes and waits at
   * most `length` ms for the peer's FIN, so that no RST discards the last response. Input is discarded meanwhile. If bytes are still
   * pending at a timeout, the connection is reset, so that a truncated response never looks complete. The ID is invalid at once.
   */
  Close = 2,
  /** Abort: sends RST and drops pending bytes. The ID is invalid at once. */
  Reset = 3,
  /** Half-close after pending bytes. A later SEND results in a Reset event with EPIPE. */
  Shutdown = 4,
  /** Deliver no Data and End events until Resume. A broken connection is still reported (Reset, without its unread bytes). */
  Pause = 5,
  Resume = 6,
  /** Set watermarks: offset is the high watermark in bytes, length the hard limit of pending bytes (0: no limit). */
  Watermark = 7,
  /** Set the receive limit: offset bytes. */
  ReceiveLimit = 8,
  /**
   * Request a Gone event when the connection has been closed, which may be long after its ID became invalid; offset: its token, above 0.
   */
  NotifyGone = 9,
  /** Request a Late event if an orderly close times out; offset: a token, above 0, that many connections may share. Excludes NotifyGone. */
  NotifyLate = 10,
  /**
   * On a connection that has delivered nothing yet: Data only shows bytes and does not consume them. Whenever more bytes arrive it shows
   * all of them, at most `offset`. A FIN after bytes arrives as End in a later batch; after Take both are delivered again. A broken
   * connection is reported without its bytes.
   */
  Peek = 11,
  /** Consume `offset` of the bytes that were shown last. Later bytes are delivered as on any other connection. */
  Take = 12,
}

/** Int32 words of `control`. */
export const enum Control {
  /**
   * JavaScript writes the index of the event it is about to handle. If onBatch throws, the shim reports the exception and continues with
   * the next event.
   */
  Cursor = 0,
  /** JavaScript writes how many submissions are queued; the shim resets it to 0 when it has carried them out. */
  Submissions = 1,
  /** The shim writes, before each batch and in flush(), the memory of all unsent bytes of the thread's connections, in units of 64 KiB. */
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
  /** All transferred bytes: the receive window first, then JavaScript's own layout. Must be a view of a SharedArrayBuffer. */
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
  /** Handles events [from, count). Called again with a later `from` after it has thrown. */
  onBatch(from: number, count: number): void;
  /**
   * Judges a peer's certificate during a handshake of a context with `peerRules`. `error`, an X509_V_ERR_* number, and `depth` are the
   * result of verifying its chain; 0: it is valid, or the context has no roots. Returns the number that counts: 0 accepts, and a negative
   * number accepts what is not verified. Absent: `error` counts. The function runs within a turn and must not throw; its submissions are carried out later.
   */
  onVerdict?(id: number, error: number, depth: number, errorText: string, der: Uint8Array, rules: string): number;
  /** High watermark and hard limit of accepted connections until Op.Watermark changes them. */
  highWatermark: number;
  hardLimit: number;
  /** Maximum bytes that an accepted connection receives at once, until Op.ReceiveLimit changes it; at least 4096. */
  receiveLimit: number;
  /**
   * Descriptors that connections may not use, capped at an eighth of RLIMIT_NOFILE. With fewer free descriptors connect() and adopt() fail
   * with EMFILE; with fewer than twice as many, accepting stops.
   */
  reserve: number;
}

/** The state of a connection, apart from its descriptor. */
export interface ConnectionProgress {
  /** Bytes sent by JavaScript that the kernel has not accepted yet. */
  readonly pending: Uint8Array;
  /** End has been delivered. */
  readonly ended: boolean;
  /** The sending direction ends after the pending bytes, or has ended. */
  readonly finAsked: boolean;
}

export interface FrozenConnection extends ConnectionProgress {
  readonly fd: number;
}

/** The initial state of a connection that another transport has had. */
export interface Adoption extends ConnectionProgress {
  readonly highWatermark: number;
  readonly hardLimit: number;
  readonly receiveLimit: number;
  /** As after Op.Pause. */
  readonly paused: boolean;
  /** As after freeze(): thaw() starts it. */
  readonly frozen: boolean;
}

/** Whether a peer must present a certificate. A client's None accepts any certificate. */
export const enum TlsVerify {
  None = 0,
  Optional = 1,
  Required = 2,
}

/** A certificate chain and its private key, in PEM form, or both in PKCS#12 form. */
export interface TlsIdentity {
  /** The certificate first, then those that it was issued by. */
  readonly chain?: Uint8Array | undefined;
  readonly key?: Uint8Array | undefined;
  readonly pkcs12?: Uint8Array | undefined;
  /** The password of the key or of the PKCS#12 file. */
  readonly password?: string | undefined;
  /** An OCSP response about the certificate, in DER form, which clients get that request one. Clients do not read it. */
  readonly ocspStaple?: Uint8Array | undefined;
}

/** What a server does when a client requests an OCSP response, and it has none that is valid. */
export const enum OcspPolicy {
  /** It sends none. */
  Lenient,
  /** The handshake fails if the server has an expired one. */
  Strict,
  /** The handshake fails. */
  MustStaple,
}

/** What a server did about an OCSP response. */
export const enum TlsStaple {
  NotRequested,
  Sent,
  Omitted,
  /** The handshake fails. */
  Failed,
}

/** When an OCSP response was made, and until when it is valid, in seconds since 1970; 0: it does not say. */
export interface OcspTimes {
  readonly thisUpdate: number;
  readonly nextUpdate: number;
}

/** A SPIFFE trust domain with the certificates of its authorities, and their revocation lists, in PEM form. */
export interface TlsTrustDomain {
  readonly name: string;
  readonly roots: Uint8Array;
}

/** Versions are numbers of the protocol: 0x0301 (TLS 1.0) to 0x0304 (TLS 1.3). Empty lists stand for OpenSSL's defaults. */
export interface TlsContextSettings {
  readonly isServer: boolean;
  readonly minVersion: number;
  readonly maxVersion: number;
  /** OpenSSL's security level: 1 is its default, 0 permits TLS 1.0 and 1.1. */
  readonly securityLevel: number;
  /** Up to TLS 1.2, in OpenSSL's form. */
  readonly ciphers: string;
  /** Cipher suites of TLS 1.3. */
  readonly cipherSuites: string;
  readonly groups: string;
  readonly signatureAlgorithms: string;
  /** As on the wire: each name after its length. A server selects by its own order. */
  readonly alpn: Uint8Array;
  readonly prefersClientCiphers: boolean;
  /** A server selects by SNI, then ECDSA before RSA, as far as the client can verify it. */
  readonly identities: readonly TlsIdentity[];
  /** Also those that do not match the SNI. */
  readonly scansAllIdentities: boolean;
  /** Clients without SNI fail. */
  readonly requiresServerName: boolean;
  readonly ocspPolicy: OcspPolicy;
  readonly verify: TlsVerify;
  /** Trusted certificates and CRLs in PEM form; empty: chains are not verified. */
  readonly roots: Uint8Array;
  readonly crl: Uint8Array;
  /** In place of both: certificates are those of workloads (X.509-SVID), which the authorities of their trust domain have issued. */
  readonly trustDomains: readonly TlsTrustDomain[];
  /** Maximum number of intermediate certificates; -1: OpenSSL's limit. */
  readonly verifyDepth: number;
  readonly checksLeafCrlOnly: boolean;
  readonly allowsExpired: boolean;
  /** A server names the roots to clients that have to present a certificate. */
  readonly sendsRootNames: boolean;
  /** For onVerdict(), which is not called if they are ''. */
  readonly peerRules: string;
  /** At most 32 bytes. Sessions of another value get a full handshake. */
  readonly sessionIdContext: Uint8Array;
  readonly hasTickets: boolean;
  /** Sessions of clients without tickets are kept in memory. */
  readonly hasStatefulSessions: boolean;
  /** How long sessions may be resumed; 0: OpenSSL's default. */
  readonly sessionSeconds: number;
  /** Number of sessions that a client keeps; 0: none. */
  readonly maxClientSessions: number;
  readonly allowsRenegotiation: boolean;
  /** For takeTlsKeys(). */
  readonly keepsKeys: boolean;
}

/** The failure of a handshake whose context is only reserved, as Transport.tlsFailure() returns it. */
export const CONTEXT_NOT_READY = 'context not ready';

/** Why a context was refused. `field`: a member of TlsContextSettings, 'identities' with its index. */
export interface TlsMistake {
  readonly field: string;
  readonly reason: string;
}

/** Indexes of what NativeTransport.tlsState() fills. */
export const enum TlsNumber {
  Version,
  /** Of the cipher suite in the TLS registry. */
  Cipher,
  /** 0: none. */
  Group,
  /** 0: none. */
  Signature,
  /** A TlsStaple. */
  Staple,
  /** TlsFlag bits. */
  Flags,
  AlpnLength,
  NameLength,
  /** Number of these. */
  Count,
}

export const enum TlsFlag {
  Resumed = 1,
  HasPeerCertificate = 2,
  /** The peer's certificate was verified. */
  Verified = 4,
}

/** The names of some TlsNumbers of one session, as TlsState has them. */
export interface TlsNames {
  readonly cipher: string;
  readonly group: string;
  readonly signature: string;
}

/** A session after its handshake, as readTlsState() returns it. */
export interface TlsState {
  /** 0x0303: TLS 1.2. */
  readonly version: number;
  readonly cipher: string;
  /** The group of the key exchange; '' if there was none. */
  readonly group: string;
  /** The peer's signature algorithm; '' without a certificate of the peer. */
  readonly signature: string;
  readonly alpn: string;
  /** SNI. */
  readonly serverName: string;
  readonly staple: TlsStaple;
  readonly isResumed: boolean;
  readonly hasPeerCertificate: boolean;
  /** The peer's certificate was verified, in this handshake or in that of the resumed session. */
  readonly isPeerVerified: boolean;
  /** A character for each byte. */
  readonly sessionId: string;
}

/** A subject alternative name. */
export interface CertificateName {
  /** A GEN_* number of OpenSSL: 0 other name, 1 email, 2 DNS, 6 URI, 7 IP address. */
  readonly type: number;
  /** Text; raw bytes of an IP address. */
  readonly value: Uint8Array;
  /** The type of an otherName. */
  readonly oid?: string;
}

/** What rules for peers are about, as OpenSSL reads it. src/io/tls/certificate.ts has everything else. */
export interface CertificateEvidence {
  /** Digests of the DER form, and of its public key (SubjectPublicKeyInfo). */
  readonly sha256: Uint8Array;
  readonly publicKeySha256: Uint8Array;
  readonly names: readonly CertificateName[];
}

export interface NativeTransport {
  /**
   * Accepts on a copy of `fd`. `contended`: other threads accept on the same socket, so only a few connections are accepted at a time.
   * `maxAccepted`: not more than this at a time; 0: as many as the transport accepts. Returns the listener's ID.
   */
  addListener(fd: number, contended: boolean, maxAccepted: number): number;
  /** Stops (false) or resumes (true) accepting; connections stay in the kernel's backlog meanwhile. */
  setAccepting(listener: number, accepting: boolean): void;
  /**
   * Removes the listener from the epoll set and closes its copy, never by shutdown(). With `acceptRest`, first accepts the connections in
   * the backlog: their Accept events follow in the next batches, and counts().listeners decreases when the backlog is empty.
   */
  removeListener(listener: number, acceptRest: boolean): void;
  /**
   * Starts a non-blocking connect to a raw sockaddr, from `local` if given. Returns the connection's ID; failure is reported as a Reset
   * event.
   */
  connect(
    remote: Uint8Array,
    local: Uint8Array | undefined,
    highWatermark: number,
    hardLimit: number,
    receiveLimit: number,
  ): number;
  /**
   * Takes over a connected socket, in the state `as` of another transport; absent: nothing is pending, and the limits are those of accepted
   * connections. If pending bytes exceed the high watermark, it counts as blocked, and Drained follows. Returns the connection's ID. If it
   * throws, the caller still owns the descriptor.
   */
  adopt(fd: number, as?: Adoption): number;
  /**
   * Removes a connection from the epoll set, so that another transport can take it over: it gets no events, sent bytes are queued, and
   * closing it closes only this descriptor. Must be called after flush(), when no event of the batch is left. Returns false if it is not
   * connected or broken.
   */
  freeze(id: number): boolean;
  /**
   * Returns the state of a frozen connection for another transport, with a copy of its descriptor that the caller owns. Throws an Error
   * with `code`: ENOENT if it is not frozen, or if later sends have broken it.
   */
  copyFrozen(id: number): FrozenConnection;
  /** Resumes a frozen connection in this transport: input that arrived meanwhile is delivered. */
  thaw(id: number): boolean;
  /** Closes this transport's descriptor of a frozen connection without affecting copies. The ID becomes invalid. */
  releaseFrozen(id: number): boolean;
  /**
   * Carries out the queued submissions. Not needed inside onBatch, whose end flushes. Throws a TypeError for an invalid submission, after
   * carrying out the others.
   */
  flush(): void;
  /** Returns the raw sockaddr of the local end (getsockname); empty for a stale ID. */
  localAddress(id: number): Uint8Array;
  /**
   * Returns the raw sockaddr that the peer's connection was directed to before the kernel redirected it (SO_ORIGINAL_DST); empty for a
   * stale ID, and where the kernel does not know.
   */
  originalDestination(id: number): Uint8Array;
  /** Returns the bytes sent by JavaScript that the kernel has not accepted yet. */
  pendingBytes(id: number): number;
  /**
   * Enables TCP keepalive for a connection; absent values keep the kernel's defaults. A no-op for stale IDs and Unix sockets. Throws an
   * Error with `code` for values that the kernel rejects.
   */
  keepAlive(id: number, settings: Keepalive): void;
  /** Returns the numbers of open connections, listeners, and connections in an orderly close. */
  counts(): { connections: number; listeners: number; closing: number };
  /**
   * Encrypts a connection, with a context of createTlsContext(). A client's handshake begins once it is connected. Bytes that are pending
   * go out first, as they are; bytes that were only shown (Op.Peek) are the first of the handshake. For a client: `serverName` is its SNI,
   * '' for none; `alpn` is offered if the context offers nothing, or in its place (`replacesAlpn`); sessions are resumed within one `sessionGroup` and server name only.
   * Must be called after flush(). Returns false if there is no such context. Throws an Error with `code`: ENOENT for a stale ID, EALREADY,
   * EBUSY for a frozen connection.
   */
  startTls(
    id: number,
    context: number,
    serverName?: string,
    alpn?: Uint8Array,
    sessionGroup?: string,
    replacesAlpn?: boolean,
  ): boolean;
  /** Undefined for plain connections and stale IDs. */
  /**
   * Fills `numbers` by TlsNumber, and returns ALPN, server name and session ID, one after the other, with a character for each byte.
   * Undefined for plain connections.
   */
  tlsState(id: number, numbers: Int32Array): string | undefined;
  tlsNames(id: number): TlsNames | undefined;
  /** OpenSSL's reasons for a failure, the first one first, joined by '|'; '' if there are none. */
  tlsFailure(id: number): string | undefined;
  /** What a server did about an OCSP response, as far as the handshake has come. */
  tlsStaple(id: number): TlsStaple | undefined;
  /** The keys of the session in the format of NSS key logs, which it forgets; '' unless its context has `keepsKeys`. */
  takeTlsKeys(id: number): string | undefined;
  /** The peer's certificates in DER form, its own first; empty if it has presented none. */
  peerCertificates(id: number): Uint8Array[] | undefined;
  /** The certificate that has issued the peer's, in the verified chain. Undefined in resumed sessions, and if nothing was verified. */
  peerIssuer(id: number): Uint8Array | undefined;
  /** The own certificate in DER form. */
  ownCertificate(id: number): Uint8Array | undefined;
  /** Returns whether a listener has had AcceptFailed and has accepted no connection since, although connections are waiting. */
  isStarved(): boolean;
  /** Closes all descriptors without events. Also called when the thread ends. */
  close(): void;
}

export interface DatagramOptions {
  /** The receive window first, then JavaScript's own bytes to send. Must be a view of a SharedArrayBuffer. */
  memory: Uint8Array;
  /** Size of the receive window, at least 64 KiB. */
  receiveBytes: number;
  /** Records of datagram-record.ts. */
  events: Int32Array;
  sends: Int32Array;
  /** Handles the first `count` events. The window and the events are reused when it returns. */
  onBatch(count: number): void;
  /** As in TransportOptions. */
  reserve: number;
}

/**
 * The UDP sockets of a thread. IDs are like those of a transport. Datagrams are never queued here: one that the kernel does not accept is
 * lost. They do not keep the thread alive.
 */
export interface NativeDatagrams {
  /** Adds a copy of a bound UDP socket, which receives after setReceiving(). Longer datagrams than `maxBytes` are dropped. Throws an Error with `code`. */
  addListener(fd: number, maxBytes: number): number;
  /** Opens a socket with `options`, bound to `local` if given, and connects it to a raw sockaddr. Throws an Error with `code`. */
  connect(
    remote: Uint8Array,
    local: Uint8Array | undefined,
    options: readonly SocketOption[] | undefined,
    maxBytes: number,
  ): number;
  /** Starts or stops receiving; datagrams wait in the kernel's buffer meanwhile. Throws an Error with `code`. */
  setReceiving(id: number, receives: boolean): void;
  /** Closes the socket. Its events of this batch are stale. */
  remove(id: number): void;
  /** Returns the raw sockaddr of the local end; empty for a stale ID. */
  localAddress(id: number): Uint8Array;
  /** Sends the first `count` records, and writes 0 or errno to each. Returns false if a record names bytes outside of the memory. */
  flush(count: number): boolean;
  /** Closes all sockets. Also called when the thread ends. */
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
  /** A UDP socket. Absent: a stream socket. */
  isDatagram?: boolean;
  /** For accepted connections; absent: off. */
  keepalive?: Keepalive | undefined;
  /** Set last before the socket is bound. */
  others?: readonly SocketOption[];
}

/** An option of setsockopt(2). */
export interface SocketOption {
  readonly level: number;
  readonly name: number;
  readonly value: Uint8Array;
}

/** Properties of a listen socket that another process may have created. */
export interface ListenerFacts {
  /** Raw sockaddr that it is bound to. */
  readonly address: Uint8Array;
  /** SO_REUSEPORT is set. */
  readonly reusePort: boolean;
  /** As ListenSocketOptions.v6Only; false unless it is an IPv6 socket. */
  readonly v6Only: boolean;
  /** It is a UDP socket. */
  readonly isDatagram: boolean;
}

/** The sender of a message, verified by the kernel. A sender in another user namespace has the overflow uid 65534. */
export interface Credentials {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

/** Callbacks of a message socket. An exception is reported as uncaught, and the socket stays open. */
export interface MessageSocketEvents {
  /** Called with one message. The receiver owns its descriptors. `credentials`: only on meeting sockets. */
  onMessage(bytes: Uint8Array, fds: readonly number[], credentials: Credentials | undefined): void;
  /** Called when a refused send() or sendTo() can be retried. */
  onWritable(): void;
  /**
   * Called when a message and its descriptors are lost; the socket stays open. EMSGSIZE: it exceeded the limits. EMFILE: this process has
   * no room for its descriptors; meeting sockets keep one descriptor in reserve for this case.
   */
  onLost?(errno: number, credentials: Credentials | undefined): void;
  /**
   * Called when the conversation has ended and the socket is closed. errno is 0 if the peer has closed it. On connected sockets without
   * onLost(), lost messages end the conversation too, because the peer relies on their delivery.
   */
  onEnd(errno: number): void;
}

/** A Unix socket for messages of at most 64 KiB and 64 descriptors. It keeps the thread alive until it is closed. */
export interface NativeMessageSocket {
  /** Sends one whole message with copies of `fds`. Returns false if the socket's buffer is full. Throws an Error with `code`. */
  send(bytes: Uint8Array, fds: readonly number[]): boolean;
  /** Like send(), from a meeting socket to a raw sockaddr. ECONNREFUSED and ENOENT mean that no socket is bound there. */
  sendTo(address: Uint8Array, bytes: Uint8Array, fds: readonly number[]): boolean;
  close(): void;
}

/** An open file, which is also closed when the thread ends. */
export interface NativeFile {
  /** For node:fs, except for its close(). */
  readonly fd: number;
  /** Closes the file. Rejects with the kernel's error, which may be that of an earlier write. A no-op if it is closed already. */
  close(): Promise<void>;
}

/** See NativeShim.watchLoop(). */
export const LOOP_UNDELAYED = 0xffff_ffff;

export interface NativeShim {
  createTransport(options: TransportOptions): NativeTransport;
  createDatagramSockets(options: DatagramOptions): NativeDatagrams;
  /** Makes a TLS context for all threads. Returns its number, above 0, or why it was refused. Throws a TypeError for members of a wrong type. */
  createTlsContext(settings: TlsContextSettings): number | TlsMistake;
  /** Makes a context without certificates, whose handshakes fail with CONTEXT_NOT_READY. Returns its number. */
  reserveTlsContext(isServer: boolean): number;
  /**
   * Puts the context `by` in place of `context`, for handshakes that begin later on any thread. `by` becomes unknown. Connections keep
   * the replaced context until they end.
   */
  replaceTlsContext(context: number, by: number): void;
  /** Connections keep a released context until they end. */
  releaseTlsContext(context: number): void;
  /**
   * Replaces session ticket keys: 80 bytes each, as in Envoy's TlsSessionTicketKeys. The first encrypts, all decrypt. `context` gets keys of
   * its own; absent: the keys that all other contexts share. Until keys are set, no tickets are sent.
   */
  setTicketKeys(keys: Uint8Array, context?: number): void;
  tlsContextCount(): number;
  /** Returns the certificates of a PEM text in DER form; undefined for unreadable text, or without a certificate. */
  readPemCertificates(pem: Uint8Array): Uint8Array[] | undefined;
  /** Undefined for bytes that are not a certificate. */
  describeCertificate(der: Uint8Array): CertificateEvidence | undefined;
  /** Undefined for bytes that are not an OCSP response about one certificate. */
  describeOcspResponse(der: Uint8Array): OcspTimes | undefined;
  /**
   * Creates a socket bound to a raw sockaddr, non-blocking and close-on-exec, not yet listening. Throws an Error with `code` (EADDRINUSE
   * …).
   */
  openListenSocket(address: Uint8Array, options: ListenSocketOptions): number;
  /** Throws an Error with `code` that names the option. */
  setSocketOption(fd: number, option: SocketOption): void;
  /** Calls listen(). Throws an Error with `code`. */
  listen(fd: number, backlog: number): void;
  /** Returns the raw sockaddr that `fd` is bound to. */
  boundAddress(fd: number): Uint8Array;
  /**
   * Returns the properties of a listen socket that another process has created, and makes it non-blocking. Throws an Error with `code`:
   * ENOTSOCK, EPROTOTYPE unless it is a TCP, UDP or Unix stream socket, EINVAL if a stream socket does not listen.
   */
  prepareListener(fd: number): ListenerFacts;
  duplicate(fd: number): number;
  closeDescriptor(fd: number): void;
  /**
   * Creates a meeting socket: a datagram socket bound to a Unix address, where other processes contact this one. `mode`: the permissions of
   * its file, if it has one, regardless of the umask; by default 0600. Throws an Error with `code` (EADDRINUSE …).
   */
  openMeetingSocket(address: Uint8Array, mode?: number): number;
  /** Creates two connected sockets for ordered messages (SOCK_SEQPACKET). One is passed to another process, whose close ends the other. */
  socketPair(): [number, number];
  /** Creates two connected Unix stream sockets for adopt(), non-blocking and close-on-exec. Throws an Error with `code`. */
  streamPair(): [number, number];
  /**
   * Takes over `fd` (from one of the two calls above, or received) and watches it on this thread's event loop. Throws an Error with `code`,
   * and then the caller still owns `fd`: EPROTOTYPE if `isConversation` and it is not SOCK_SEQPACKET.
   */
  watchMessages(fd: number, events: MessageSocketEvents, isConversation?: boolean): NativeMessageSocket;
  /** Makes the kernel send `signal` to this process when the thread that started it ends (PR_SET_PDEATHSIG); 0 disables that. */
  endWithParent(signal: number): void;
  /** Reaps a child that has exited. Returns false if it still runs or is not a child. */
  reap(pid: number): boolean;
  /** Collects the calling thread's garbage and gives the pages back to the kernel: about 3 ms for each megabyte in use. */
  collectGarbage(): void;
  /** Returns unused memory of the C library to the kernel. */
  trimMemory(): void;
  /**
   * Returns the pages that are entirely in memory[offset, offset + length) to the kernel; their bytes become 0. `memory` is a view of a
   * SharedArrayBuffer. Throws a RangeError for a range outside of it, and an Error with `code` if the kernel refuses.
   */
  releasePages(memory: Uint8Array, offset: number, length: number): void;
  /**
   * Measures each turn of the calling thread's event loop until the thread ends. `samples` is a view of a SharedArrayBuffer: the number of
   * samples, which the caller resets, then pairs of the turn's duration and the delay of the wait before it, in µs; LOOP_UNDELAYED if an
   * event ended the wait. Samples without room are lost. Call it once.
   */
  watchLoop(samples: Uint32Array): void;
  /** Returns the kernel's ID of the calling thread (gettid), as in log lines. */
  threadId(): number;
  /** Returns the number of CPUs in the affinity mask of the calling thread. Throws an Error with `code`. */
  allowedProcessors(): number;
  /** Lets the kernel write a core file when the process crashes (PR_SET_DUMPABLE). Throws an Error with `code`. */
  enableCoreDump(): void;
  /**
   * Opens a file for non-blocking writes, or creates one with mode 0644 at most. In a world-writable directory, links are followed only if
   * root or this process's user owns them, and files that another user owns or has linked are refused. Throws an Error with `code`: EPERM
   * for these, ENXIO for a pipe without a reader.
   */
  openOutput(path: string, appends: boolean): NativeFile;
  /** Like openOutput(), on a thread of libuv's pool. */
  openOutputLater(path: string, appends: boolean): Promise<NativeFile>;
  /**
   * Replaces the content of a file. A regular file is replaced by renaming a new one, or written in place where that is not permitted.
   * Follows links, refuses and throws like openOutput().
   */
  replaceFile(path: string, bytes: Uint8Array): void;
  /** Throws the errors of openOutput() that can be detected without opening or creating a file. */
  checkOutput(path: string): void;
  /** Sets the permissions of a Unix socket's file. Follows links and throws like openOutput(), and throws ENOTSOCK for any other file. */
  setSocketMode(path: string, mode: number): void;
}

/**
 * Loads the shim. Each thread gets its own instance.
 * @throws BatonError INSTALLATION_BROKEN
 */
export function loadShim(): NativeShim {
  return loadNative('native-shim', packagePath(BUILD_FOLDER, 'shim.node')) as NativeShim;
}
