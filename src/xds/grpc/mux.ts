// Subscriptions that share a stream: all of them on the aggregated one, one alone on a stream of its own. What they ask for
// in a turn of the loop travels together, so that an update of many resources brings one request.

import { messageOf } from '../../common/errors/errors.js';
import { nextTurn } from '../../common/time/next-turn.js';
import { atMostMs } from '../../common/time/within-ms.js';
import type { ApiConfigSource } from '../../config/generated/api.js';
import { escaped } from '../../config/text/problem.js';
import { forEachGuarded } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import type { ResourceType } from '../resource.js';
import type { Subscription, SubscriptionRequest } from '../subscription.js';
import type { GrpcSourcesContext } from './grpc-sources-context.js';
import { ManagementStream, type StreamEvents, UnreadableError } from './management-stream.js';
import { Delta } from './protocols/delta.js';
import {
  decodeDeltaResponse,
  decodeStateResponse,
  type Response,
  withClientFeatures,
} from './protocols/discovery-messages.js';
import { StateOfTheWorld } from './protocols/state-of-the-world.js';
import { methodOf, typeUrlOf } from './services.js';
import { TypeChannel } from './type-channel.js';

/** What a server may do that knows that its client understands it. One has two names: in the list of features, and with the protocol. */
const CLIENT_FEATURES = [
  'xds.config.supports-resource-ttl',
  'xds.config.resource-in-sotw',
  'xds.config.supports-resource-in-sotw',
];

const logger = getLogger('config');

export class Mux implements StreamEvents {
  readonly #type: ResourceType | 'all';
  readonly #isDelta: boolean;
  readonly #saysNodeOnce: boolean;
  readonly #context: GrpcSourcesContext;
  readonly #stream: ManagementStream;
  /** By type URL, in the order of the first subscription. */
  readonly #channels = new Map<string, TypeChannel>();
  /** Channels whose subscriptions have changed. */
  readonly #changed = new Set<TypeChannel>();
  /** Channels that may have something to say, in the order in which they came to it. */
  readonly #due = new Set<TypeChannel>();
  #node: Uint8Array | undefined;
  /** Counts them, as they come and go. */
  #streams = 0;
  /** The response that is being handled. */
  #work: Promise<void> = Promise.resolve();
  /** Whose response that is. */
  #handling: TypeChannel | undefined;
  #hasSaidNode = false;
  #isStarted = false;
  #isScheduled = false;
  #isClosed = false;

  /** `statPrefix` of `control_plane.`, with its final dot or empty. */
  constructor(type: ResourceType | 'all', source: ApiConfigSource, statPrefix: string, context: GrpcSourcesContext) {
    this.#type = type;
    this.#isDelta = source.api_type === 'DELTA_GRPC';
    this.#saysNodeOnce = source.set_node_on_first_message_only ?? false;
    this.#context = context;
    this.#stream = new ManagementStream(methodOf(type, this.#isDelta), source, statPrefix, context, this);
  }

  subscribe(request: SubscriptionRequest): Subscription {
    const channel = this.#channelOf(request.type);
    const watch = channel.add(request);
    if (this.#type === 'all') request.gate?.follow((isOpen) => this.#holdAnswers(channel, !isOpen));
    this.#change(channel);
    if (!this.#isStarted) void this.#start();
    return {
      setNames: (names) => {
        if (channel.setNames(watch, names)) this.#change(channel);
      },
      close: () => {
        if (channel.remove(watch)) this.#change(channel);
      },
    };
  }

  /** Ends the stream and everything on it. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stream.close();
    for (const channel of this.#channels.values()) channel.close();
  }

  opened(): void {
    this.#streams++;
    this.#hasSaidNode = false;
    this.#flush();
    this.#due.clear();
    for (const channel of this.#channels.values()) {
      channel.opened();
      this.#due.add(channel);
    }
  }

  received(message: Buffer): Promise<void> {
    const stream = this.#streams;
    // One of the stream before may still be at work.
    const handled = this.#work.then(() => this.#handle(message, () => stream === this.#streams));
    this.#work = handled.catch(() => {});
    return handled;
  }

  lost(): void {
    this.#streams++;
    const what = 'internal error: subscriptions do not take note of a lost stream';
    forEachGuarded(this.#channels.values(), what, (channel) => channel.connectionFailed());
  }

  get due(): number {
    for (const channel of this.#due) if (!channel.isDue) this.#due.delete(channel);
    return this.#due.size;
  }

  next(): Uint8Array {
    const [channel] = this.#due;
    const node = this.#saysNodeOnce && this.#hasSaidNode ? undefined : this.#node;
    this.#hasSaidNode = true;
    const request = channel!.request(node);
    if (!channel!.isDue) this.#due.delete(channel!);
    return request;
  }

  async #start(): Promise<void> {
    this.#isStarted = true;
    try {
      this.#node = withClientFeatures(await this.#context.node(), CLIENT_FEATURES);
    } catch (error) {
      if (!this.#isClosed) this.#context.failed('the node of requests cannot be encoded', error);
      return;
    }
    if (!this.#isClosed) this.#stream.open();
  }

  /** Resolves when what has come is handled, and what has waited behind it, or after so long. */
  async #allHandled(mostMs: number): Promise<void> {
    const untilMs = performance.now() + mostMs;
    let work: unknown;
    for (let leftMs = mostMs; work !== this.#work && leftMs > 0; leftMs = untilMs - performance.now()) {
      work = this.#work;
      await atMostMs(this.#work, leftMs);
      await nextTurn();
    }
  }

  async #handle(message: Buffer, isCurrent: () => boolean): Promise<void> {
    if (this.#isClosed) return;
    const response = this.#decode(message);
    if (response.identifier !== undefined) this.#stream.identify(response.identifier);
    const channel = this.#channels.get(response.typeUrl);
    this.#handling = channel;
    if (channel !== undefined) await channel.handle(response, isCurrent);
    else this.#handleStray(response, isCurrent());
    const answering = channel ?? this.#only;
    if (answering === undefined || this.#isClosed) return;
    this.#due.add(answering);
    this.#schedule();
  }

  #decode(message: Buffer): Response {
    try {
      return this.#isDelta ? decodeDeltaResponse(message) : decodeStateResponse(message);
    } catch (error) {
      throw new UnreadableError(`a response of ${message.length} bytes cannot be read: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** A response of a type that nobody asked for. */
  #handleStray(response: Response, isCurrent: boolean): void {
    const only = this.#only;
    if (only === undefined) {
      logger.warning(
        `Ignoring the message for type URL ${escaped(response.typeUrl)} as it has no current subscribers.`,
      );
    } else {
      const url = typeUrlOf(this.#type as ResourceType);
      only.refuse(
        response,
        `a response of type '${escaped(response.typeUrl)}' where '${url}' was asked for`,
        isCurrent,
      );
    }
  }

  /** The channel of a stream that has one. */
  get #only(): TypeChannel | undefined {
    return this.#type === 'all' ? undefined : this.#channels.get(typeUrlOf(this.#type));
  }

  #channelOf(type: ResourceType): TypeChannel {
    const url = typeUrlOf(type);
    let channel = this.#channels.get(url);
    if (channel === undefined) {
      const protocol = this.#isDelta ? new Delta(url) : new StateOfTheWorld(url);
      channel = new TypeChannel(type, protocol, this.#context, (mostMs) => this.#allHandled(mostMs));
      this.#channels.set(url, channel);
    }
    return channel;
  }

  #holdAnswers(channel: TypeChannel, areHeld: boolean): void {
    channel.holdAnswers(areHeld);
    if (areHeld || this.#isClosed) return;
    this.#due.add(channel);
    this.#schedule();
  }

  #change(channel: TypeChannel): void {
    if (this.#isClosed) return;
    this.#changed.add(channel);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      // What is asked for meanwhile waits: it travels together at the end of the response, which schedules it.
      if (this.#isClosed || this.#handling?.isApplying === true) return;
      try {
        this.#flush();
      } catch (error) {
        return this.#stream.fail(error);
      }
      this.#stream.send();
    });
  }

  #flush(): void {
    // Watchers that are told something may change further subscriptions.
    for (const channel of this.#changed) {
      this.#changed.delete(channel);
      channel.flush();
      // Not before: whoever sends meanwhile, once the rate limit allows, would find that it has nothing to say.
      this.#due.add(channel);
    }
  }
}
