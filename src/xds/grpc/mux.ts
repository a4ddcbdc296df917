// Subscriptions that share a stream: all of them on the aggregated stream, a single one on its own stream. Changes within one
// turn of the loop are sent together, so that an update of many resources leads to one request.

import { messageOf } from '../../common/errors/errors.js';
import { inTurns, nextTurn } from '../../common/time/next-turn.js';
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

/**
 * Client features that permit the server to use them. One has two names: that in the list of features, and that in the protocol.
 */
const CLIENT_FEATURES = [
  'xds.config.supports-resource-ttl',
  'xds.config.resource-in-sotw',
  'xds.config.supports-resource-in-sotw',
];

const logger = getLogger('config');

export class Mux implements StreamEvents {
  readonly #type: ResourceType | 'all';
  readonly #isDelta: boolean;
  readonly #sendsNodeOnce: boolean;
  readonly #context: GrpcSourcesContext;
  readonly #stream: ManagementStream;
  /** By type URL, in the order of the first subscription. */
  readonly #channels = new Map<string, TypeChannel>();
  /** Channels with changed subscriptions. */
  readonly #changed = new Set<TypeChannel>();
  /** Channels that may have a pending request, in order. */
  readonly #due = new Set<TypeChannel>();
  #node: Uint8Array | undefined;
  /** Changes whenever a stream opens or ends. */
  #streams = 0;
  /** Resolves when the current response is handled. */
  #work: Promise<void> = Promise.resolve();
  /** The channel of that response. */
  #handling: TypeChannel | undefined;
  #hasSentNode = false;
  #isStarted = false;
  #isScheduled = false;
  #isClosed = false;

  /** `statPrefix` of `control_plane.`, empty or with its final dot. */
  constructor(type: ResourceType | 'all', source: ApiConfigSource, statPrefix: string, context: GrpcSourcesContext) {
    this.#type = type;
    this.#isDelta = source.api_type === 'DELTA_GRPC';
    this.#sendsNodeOnce = source.set_node_on_first_message_only ?? false;
    this.#context = context;
    this.#stream = new ManagementStream(methodOf(type, this.#isDelta), source, statPrefix, context, this);
  }

  subscribe(request: SubscriptionRequest): Subscription {
    const channel = this.#channelOf(request.type);
    const watch = channel.add(request);
    if (this.#type === 'all') request.gate?.observe((isOpen) => this.#holdAnswers(channel, !isOpen));
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

  /** Ends the stream and its subscriptions. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stream.close();
    for (const channel of this.#channels.values()) channel.close();
  }

  opened(): void {
    this.#streams++;
    this.#hasSentNode = false;
    this.#flush();
    this.#due.clear();
    for (const channel of this.#channels.values()) {
      channel.opened();
      this.#due.add(channel);
    }
  }

  received(message: Buffer): Promise<void> {
    const stream = this.#streams;
    // A response of the previous stream may still be in progress.
    const handled = this.#work.then(() => this.#handle(message, () => stream === this.#streams));
    this.#work = handled.catch(() => {});
    return handled;
  }

  lost(): void {
    this.#streams++;
    const what = 'internal error: subscriptions were not notified of a lost stream';
    forEachGuarded(this.#channels.values(), what, (channel) => channel.connectionFailed());
  }

  get due(): number {
    for (const channel of this.#due) if (!channel.isDue) this.#due.delete(channel);
    return this.#due.size;
  }

  next(): Uint8Array {
    const [channel] = this.#due;
    const node = this.#sendsNodeOnce && this.#hasSentNode ? undefined : this.#node;
    this.#hasSentNode = true;
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

  /** Resolves when all received responses are handled, or after `maxMs`. */
  async #allHandled(maxMs: number): Promise<void> {
    const untilMs = performance.now() + maxMs;
    let work: unknown;
    for (let leftMs = maxMs; work !== this.#work && leftMs > 0; leftMs = untilMs - performance.now()) {
      work = this.#work;
      await atMostMs(this.#work, leftMs);
      await nextTurn();
    }
  }

  async #handle(message: Buffer, isCurrent: () => boolean): Promise<void> {
    if (this.#isClosed) return;
    const response = await this.#decode(message);
    if (this.#isClosed) return;
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

  async #decode(message: Buffer): Promise<Response> {
    try {
      return await inTurns(this.#isDelta ? decodeDeltaResponse(message) : decodeStateResponse(message));
    } catch (error) {
      throw new UnreadableError(`a response of ${message.length} bytes cannot be read: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** Handles a response of a type without a subscription. */
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

  /** The channel of a stream with a single type. */
  get #only(): TypeChannel | undefined {
    return this.#type === 'all' ? undefined : this.#channels.get(typeUrlOf(this.#type));
  }

  #channelOf(type: ResourceType): TypeChannel {
    const url = typeUrlOf(type);
    let channel = this.#channels.get(url);
    if (channel === undefined) {
      const protocol = this.#isDelta ? new Delta(url) : new StateOfTheWorld(url);
      channel = new TypeChannel(type, protocol, this.#context, (maxMs) => this.#allHandled(maxMs));
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
      // Requests made during an update wait, and are sent together at the end of the response, which schedules them.
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
    // Notified watchers may change further subscriptions.
    for (const channel of this.#changed) {
      this.#changed.delete(channel);
      channel.flush();
      // Only now: a send() in between, when the rate limit permits one, would find no pending request.
      this.#due.add(channel);
    }
  }
}
