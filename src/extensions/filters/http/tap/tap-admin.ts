// POST /tap: attaches a tap to the filters with a config_id, on all workers, until the client disconnects.

import type { TapConfig, TapRequest } from '../../../../config/generated/api.js';
import {
  BatonError,
  durationMs,
  type EndpointAnswer,
  getLogger,
  type PostEndpoint,
  type PrimaryFilterContext,
  type PrimaryPart,
  type PrimaryPort,
} from '../../../sdk.js';
import { MatchRules } from './matching/match-rules.js';
import { type SentTrace, TAP, type TapSession } from './session.js';
import { TraceBudget } from './traces/trace-budget.js';
import { type Collecting, TraceStream } from './traces/trace-stream.js';

const logger = getLogger('tap');

/** Maximum of the configurable body limit: bodies are held in memory until their trace is sent. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;

/** A request that is answered with 400 and this message. */
class RefusedTap extends Error {}

/** One object per server. It serves its endpoint while there are filters with a tap configuration. */
export class TapAdmin implements PostEndpoint {
  readonly path = '/tap';
  readonly help = 'tap filter control';
  readonly #context: PrimaryFilterContext;
  readonly #port: PrimaryPort;
  /** The number of filters by config_id. */
  readonly #filters = new Map<string, number>();
  #unserve: (() => void) | undefined;
  /** A tap is attached or being attached. */
  #isAttached = false;
  #stream: TraceStream | undefined;
  #sessions = 0;

  static of(context: PrimaryFilterContext): TapAdmin {
    const port = context.port(TAP);
    let admin = known.get(port);
    if (admin === undefined) {
      admin = new TapAdmin(context, port);
      known.set(port, admin);
    }
    return admin;
  }

  private constructor(context: PrimaryFilterContext, port: PrimaryPort) {
    this.#context = context;
    this.#port = port;
  }

  /** Adds a filter with this config_id; close() of the result removes it. */
  add(configId: string): PrimaryPart {
    this.#filters.set(configId, (this.#filters.get(configId) ?? 0) + 1);
    this.#unserve ??= this.#context.serve(this);
    return { close: () => this.#remove(configId) };
  }

  /** Answers POST /tap with traces, or with 400 and the reason. */
  async answer(body: Buffer): Promise<EndpointAnswer> {
    if (this.#isAttached) return refused('An attached /tap admin stream already exists. Detach it.');
    if (body.length === 0) return refused('/tap requires a JSON/YAML body');
    this.#isAttached = true;
    try {
      return this.#attach(await this.#read(body));
    } catch (error) {
      this.#isAttached = false;
      if (error instanceof RefusedTap) return refused(error.message);
      throw error;
    }
  }

  /** Parses and checks a request. Throws RefusedTap. */
  async #read(body: Buffer): Promise<TapRequest> {
    const checked = await this.#context.checkMessage('envoy.admin.v3.TapRequest', body.toString());
    if (!checked.ok) throw new RefusedTap(checked.reason);
    const request = checked.message as TapRequest;
    checkConfig(request.tap_config!);
    if (!this.#filters.has(request.config_id!)) {
      throw new RefusedTap(`Unknown config id '${request.config_id}'. No extension has registered with this id.`);
    }
    return request;
  }

  #attach({ config_id, tap_config: config }: TapRequest): EndpointAnswer {
    const configId = config_id!;
    const budget = TraceBudget.of(this.#port.workers);
    const stream = new TraceStream(budget, collectingOf(config!), {
      completed: () => this.#port.publish(undefined),
      ended: () => this.#detached(configId, budget),
    });
    const session: TapSession = { id: ++this.#sessions, configId, config: config!, budget: budget.buffer };
    this.#port.onMessage = (worker, message) => {
      const trace = message as SentTrace;
      // Workers may still send traces of an earlier session.
      if (trace.session === session.id) stream.put(worker, trace.bytes);
    };
    this.#port.onWorkerDeath = (worker) => budget.releaseWorker(worker);
    this.#stream = stream;
    this.#port.publish(session);
    logger.info(`a tap is attached to '${configId}'`);
    return { contentType: contentTypeOf(config!), body: stream };
  }

  #detached(configId: string, { lost }: TraceBudget): void {
    this.#stream = undefined;
    this.#isAttached = false;
    this.#port.onMessage = this.#port.onWorkerDeath = undefined;
    logger.info(`the tap of '${configId}' is detached`);
    if (lost > 0) logger.warning(`${lost} trace(s) were lost: the client of the tap reads too slowly`);
  }

  #remove(configId: string): void {
    const left = this.#filters.get(configId)! - 1;
    if (left > 0) this.#filters.set(configId, left);
    else this.#filters.delete(configId);
    if (this.#filters.size > 0) return;
    void this.#stream?.return();
    this.#unserve?.();
    this.#unserve = undefined;
  }
}

/** Each listener has its own context; the port is common to all. */
const known = new WeakMap<PrimaryPort, TapAdmin>();

function refused(reason: string): EndpointAnswer {
  return { status: 400, body: reason };
}

/** Checks what the schema cannot express. Throws RefusedTap. */
function checkConfig(config: TapConfig): void {
  try {
    new MatchRules(config);
  } catch (error) {
    if (!(error instanceof BatonError)) throw error;
    throw new RefusedTap(`tap_config: ${error.describe()}`);
  }
  const { max_buffered_rx_bytes: rx = 0, max_buffered_tx_bytes: tx = 0 } = config.output_config!;
  if (Math.max(rx, tx) > MAX_BODY_BYTES) {
    const field = rx > MAX_BODY_BYTES ? 'max_buffered_rx_bytes' : 'max_buffered_tx_bytes';
    throw new RefusedTap(`tap_config.output_config.${field}: it must be at most ${MAX_BODY_BYTES}`);
  }
}

/** Returns undefined if traces are streamed. */
function collectingOf({ output_config: output }: TapConfig): Collecting | undefined {
  const buffered = output!.sinks![0]!.buffered_admin;
  if (buffered === undefined) return undefined;
  const { max_traces: maxTraces, timeout } = buffered;
  return { maxTraces: Number(maxTraces), timeoutMs: durationMs(timeout, 0) };
}

function contentTypeOf({ output_config: output }: TapConfig): string | undefined {
  const isBinary = output!.sinks![0]!.format === 'PROTO_BINARY_LENGTH_DELIMITED';
  return isBinary ? 'application/octet-stream' : undefined;
}
