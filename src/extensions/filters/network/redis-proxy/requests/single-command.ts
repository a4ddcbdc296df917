// A command that one host replies to. Follows redirections of a Redis cluster.

import { type Cluster, type ClusterHost, ClusterStats } from '../../../../sdk.js';
import { isRead } from '../commands.js';
import { type Exchange, NO_HOST, UPSTREAM_FAILURE } from '../exchange.js';
import { isErrorReply } from '../resp/reply-reader.js';
import { commandBytes, textCommand } from '../resp/write.js';
import { isMirrored, type Route } from '../routes.js';
import type { ReplyReceiver } from '../upstream/host-client.js';

/** A host that redirects more often than that is not followed. */
const MAX_REDIRECTIONS = 8;
/** Redirections are short. */
const MAX_REDIRECTION_BYTES = 300;

const ASKING = textCommand('asking');
const IGNORED: ReplyReceiver = { replied() {}, failed() {} };

/** Sends a command to the host of its key, words[keyIndex]. The receiver gets the reply, or an error in its place. */
export function sendByKey(
  exchange: Exchange,
  words: readonly Buffer[],
  keyIndex: number,
  receiver: ReplyReceiver = exchange,
): void {
  const key = words[keyIndex]!;
  const route = exchange.proxy.routes.find(key);
  if (route === undefined) return receiver.replied(NO_HOST);
  const name = words[0]!.toString('latin1').toLowerCase();
  const sent = withoutPrefix(words, keyIndex, route);
  const command = commandBytes(sent);
  const reads = isRead(name);
  if (route.mirrors.length > 0) mirror(exchange, route, command, sent[keyIndex]!, reads);
  const cluster = ((reads ? route.readCluster : undefined) ?? route.cluster).current;
  sendTo(exchange, cluster, sent[keyIndex], command, name, receiver, reads);
}

/** Sends a command to any host of the cluster of all keys. */
export function sendToAny(exchange: Exchange, words: readonly Buffer[]): void {
  const cluster = exchange.proxy.routes.find(Buffer.alloc(0))?.cluster.current;
  const name = words[0]!.toString('latin1').toLowerCase();
  sendTo(exchange, cluster, undefined, commandBytes(words), name, exchange, name === 'randomkey');
}

function sendTo(
  exchange: Exchange,
  routed: Cluster | undefined,
  key: Buffer | undefined,
  command: Buffer,
  name: string,
  receiver: ReplyReceiver,
  reads: boolean,
): void {
  const { hosts } = exchange.proxy;
  const cluster = hosts.clusterOf(routed, key);
  const host = cluster && hosts.pick(cluster, key, reads);
  if (cluster === undefined || host === undefined) return receiver.replied(NO_HOST);
  sendToHost(exchange, cluster, host, command, name, receiver);
}

export function sendToHost(
  exchange: Exchange,
  cluster: Cluster,
  host: ClusterHost,
  command: Buffer,
  name: string,
  receiver: ReplyReceiver,
): void {
  new SingleCommand(exchange, cluster, command, name, receiver).send(host);
}

function withoutPrefix(
  words: readonly Buffer[],
  keyIndex: number,
  { prefix, removesPrefix }: Route,
): readonly Buffer[] {
  if (!removesPrefix || prefix.length === 0) return words;
  return words.map((word, index) => (index === keyIndex ? word.subarray(prefix.length) : word));
}

function mirror(exchange: Exchange, route: Route, command: Buffer, key: Buffer, reads: boolean): void {
  const { hosts, random } = exchange.proxy;
  for (const policy of route.mirrors) {
    const cluster = hosts.clusterOf(policy.cluster.current, key);
    if (cluster === undefined || !isMirrored(policy, reads, random)) continue;
    const host = hosts.pick(cluster, key, reads);
    const client = host && hosts.of(cluster, host);
    // Nobody waits for a slow mirror.
    if (client !== undefined && !client.isBlocked) client.send(command, IGNORED);
  }
}

class SingleCommand implements ReplyReceiver {
  readonly #exchange: Exchange;
  readonly #cluster: Cluster;
  readonly #command: Buffer;
  readonly #name: string;
  readonly #receiver: ReplyReceiver;
  #redirections = 0;

  constructor(exchange: Exchange, cluster: Cluster, command: Buffer, name: string, receiver: ReplyReceiver) {
    this.#exchange = exchange;
    this.#cluster = cluster;
    this.#command = command;
    this.#name = name;
    this.#receiver = receiver;
  }

  send(host: ClusterHost): void {
    const { hosts } = this.#exchange.proxy;
    const client = hosts.of(this.#cluster, host);
    const isSent = client?.send(this.#command, this, hosts.counts(this.#cluster, this.#name)) ?? false;
    if (!isSent) this.#receiver.replied(UPSTREAM_FAILURE);
    else if (client!.isBlocked) this.#exchange.slowedBy(client!);
  }

  replied(reply: Uint8Array): void {
    if (this.#exchange.isAbandoned) return;
    if (!this.#exchange.proxy.followsRedirections || !isErrorReply(reply)) return this.#receiver.replied(reply);
    const text = Buffer.from(reply.subarray(1, MAX_REDIRECTION_BYTES)).toString('latin1').trimEnd();
    if (text.startsWith('CLUSTERDOWN ')) {
      this.#cluster.events?.failed();
      return this.#receiver.replied(UPSTREAM_FAILURE);
    }
    const redirection = /^(MOVED|ASK) \d{1,5} (\S+)$/.exec(text);
    if (redirection === null || !this.#follow(redirection[1] === 'ASK', redirection[2]!)) this.#receiver.replied(reply);
  }

  failed(): void {
    this.#cluster.events?.failed();
    if (!this.#exchange.isAbandoned) this.#receiver.failed();
  }

  /** Returns false if the command cannot go to that host. */
  #follow(asks: boolean, address: string): boolean {
    const { hosts } = this.#exchange.proxy;
    const { stats } = this.#cluster;
    const host = this.#redirections++ < MAX_REDIRECTIONS ? hosts.at(this.#cluster, address) : undefined;
    const client = host && hosts.of(this.#cluster, host);
    if (client === undefined) {
      stats.increment(ClusterStats.at.upstream_internal_redirect_failed_total);
      return false;
    }
    stats.increment(ClusterStats.at.upstream_internal_redirect_succeeded_total);
    this.#cluster.events?.redirected();
    const isSent = !asks || client.send(ASKING, IGNORED);
    if (!isSent || !client.send(this.#command, this, hosts.counts(this.#cluster, this.#name)))
      this.#receiver.replied(UPSTREAM_FAILURE);
    return true;
  }
}
