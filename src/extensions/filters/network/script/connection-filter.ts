// The filter of one connection: calls the hooks of the module's version with which the connection began, and obeys what they return.

import type { ConnectionContext as Api, ConnectionFacts, DataResult } from '../../../../api/index.js';
import { connectionFacts } from '../../../script/connection-facts.js';
import type { Version } from '../../../script/current-version.js';
import type { SharedByStreams } from '../../../script/shared.js';
import { ScriptFilterStats } from '../../../script/stats.js';
import { type ScopeOwner, StreamScope } from '../../../script/stream-scope.js';
import {
  FilterClose,
  type FilteredClient,
  FilterStatus,
  type Memory,
  type NetworkFilter,
  Timer,
} from '../../../sdk.js';
import { UnseenBytes } from './unseen-bytes.js';

const { at } = ScriptFilterStats;

/** What the connections of a filter in one chain share, on one worker. */
export interface SharedByConnections extends SharedByStreams {
  readonly memory: Pick<Memory, 'bytes'>;
  hasCluster(name: string): boolean;
  /** Called before anything is done in a promise's callback. */
  beginTurn(): void;
}

type HookName = 'onConnection' | 'onData';

export class ConnectionFilter implements NetworkFilter, ScopeOwner {
  readonly #shared: SharedByConnections;
  readonly #version: Version<'network filter'>;
  readonly #client: FilteredClient;
  readonly #context: ConnectionContext;
  readonly #unseen = new UnseenBytes();
  /** Runs while the connection is held. */
  readonly #timer: Timer;
  /** A promise of a hook is pending. */
  #isWaiting = false;
  #isStopped = false;
  /** The last hook was onData. */
  #hasData = false;
  /** All further bytes pass. */
  #isDone: boolean;
  #isEnded = false;

  constructor(shared: SharedByConnections, version: Version<'network filter'>, client: FilteredClient) {
    this.#shared = shared;
    this.#version = version;
    this.#client = client;
    this.#isDone = version.definition.onData === undefined;
    this.#context = new ConnectionContext(shared, client, version.config, this);
    this.#timer = new Timer(undefined, () => this.#timedOut());
  }

  onNewConnection(): FilterStatus {
    const { definition } = this.#version;
    if (definition.onConnection === undefined) return this.#pass(0);
    return this.#call('onConnection', () => definition.onConnection!(this.#context));
  }

  onData(offset: number, length: number): FilterStatus {
    if (this.#isDone && !this.#isWaiting) return FilterStatus.Continue;
    if (!this.#isDone) this.#unseen.append(this.#shared.memory.bytes.subarray(offset, offset + length));
    return this.#isWaiting ? FilterStatus.Stop : this.#show();
  }

  onDestroy(): void {
    this.#isEnded = true;
    this.#shared.timers.cancel(this.#timer);
    try {
      const result: unknown = this.#version.definition.onClose?.(this.#context);
      if (result instanceof Promise) this.#watch('onClose', result);
    } catch (error) {
      this.#failedLate('onClose', error);
    }
    this.#context.end();
  }

  // ── ScopeOwner ───────────────────────────────────────────────────────────────────────────────────────────────────

  run(act: () => void): void {
    if (this.#isEnded) return;
    this.#shared.beginTurn();
    act();
  }

  outlivesHook(): void {}

  timerFailed(thrown: unknown, act: unknown): void {
    this.#isWaiting = false;
    if (this.#failed('a timer', thrown, act) === FilterStatus.Continue) this.#client.continueReading();
  }

  // ── Hooks ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Shows the module all bytes that have not been passed on. */
  #show(): FilterStatus {
    const { length } = this.#unseen;
    if (this.#isDone || length === 0) return this.#pass(length);
    return this.#call('onData', () => this.#version.definition.onData!(this.#unseen.view(), this.#context));
  }

  #call(hook: HookName, act: () => DataResult | Promise<DataResult>): FilterStatus {
    const { length } = this.#unseen;
    this.#hasData = hook === 'onData';
    try {
      const result = act();
      if (this.#isEnded || this.#client.isClosed) {
        if (result instanceof Promise) this.#watch(hook, result);
        return FilterStatus.Stop;
      }
      return result instanceof Promise ? this.#wait(hook, length, result) : this.#obey(hook, length, result);
    } catch (error) {
      return this.#failed(hook, error);
    }
  }

  #wait(hook: HookName, length: number, result: Promise<DataResult>): FilterStatus {
    this.#isWaiting = true;
    result.then(
      (value) => this.#settled(() => this.#obey(hook, length, value)),
      (error: unknown) => this.#settled(() => this.#failed(hook, error)),
    );
    return this.#stop();
  }

  /** Called when the hook that held the connection has ended. */
  #settled(act: () => FilterStatus): void {
    if (this.#isEnded || !this.#isWaiting) return;
    this.#isWaiting = false;
    this.#shared.beginTurn();
    if (act() === FilterStatus.Continue) this.#client.continueReading();
  }

  /** `length`: of the bytes that the hook has seen. */
  #obey(hook: HookName, length: number, result: unknown): FilterStatus {
    const isResult = result === undefined || result === 'more' || (hook === 'onData' && result === 'done');
    if (!isResult)
      return this.#failed(hook, new TypeError(`${hook} has returned something else than ${allowed(hook)}`));
    if (result === 'more' && this.#version.definition.onData === undefined)
      return this.#failed(hook, new TypeError("onConnection has returned 'more', but there is no onData"));
    if (result === 'done') this.#isDone = true;
    // More bytes may have arrived while it was waited for.
    if (result === 'more') return this.#unseen.length > length ? this.#show() : this.#stop();
    if (hook === 'onData') this.#unseen.drop(length);
    return this.#show();
  }

  #stop(): FilterStatus {
    if (!this.#isStopped) this.#shared.timers.reschedule(this.#timer, this.#shared.timeoutMs);
    this.#isStopped = true;
    return FilterStatus.Stop;
  }

  #pass(length: number): FilterStatus {
    this.#shared.timers.cancel(this.#timer);
    this.#isStopped = false;
    this.#unseen.drop(length);
    this.#context.isPassedOn = true;
    return FilterStatus.Continue;
  }

  // ── Failures ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #timedOut(): void {
    this.#shared.stats.increment(at.timeouts);
    const why = new Error(`it has held the connection for ${this.#shared.timeoutMs} ms`);
    const wasWaiting = this.#isWaiting;
    this.#isWaiting = false;
    const hook = wasWaiting && !this.#hasData ? 'onConnection' : 'onData';
    if (this.#fail(hook, why, 'script_timeout', this.#version.definition[hook]) === FilterStatus.Continue)
      this.#client.continueReading();
  }

  #failed(hook: string, thrown: unknown, failed: unknown = this.#version.definition[hook as HookName]): FilterStatus {
    this.#shared.stats.increment(at.errors);
    return this.#fail(hook, thrown, 'script_error', failed);
  }

  /** Reports a promise that nothing waits for, if it is rejected. */
  #watch(hook: string, result: Promise<unknown>): void {
    result.catch((error: unknown) => this.#failedLate(hook, error));
  }

  #failedLate(hook: string, thrown: unknown): void {
    this.#shared.stats.increment(at.errors);
    this.#report(hook, thrown, 'the connection had ended', this.#version.definition[hook as HookName]);
  }

  #report(hook: string, thrown: unknown, result: string, failed: unknown): void {
    const { remoteText, serial } = this.#client;
    const connection = `connection ${serial} from ${remoteText}`;
    this.#shared.faults.report(hook, thrown, result, { hook: failed, connection });
  }

  #fail(hook: string, thrown: unknown, details: string, failed: unknown): FilterStatus {
    const { failsOpen } = this.#shared;
    this.#report(hook, thrown, failsOpen ? 'the connection goes on' : 'the connection is closed', failed);
    this.#isDone = true;
    if (failsOpen) return this.#pass(this.#unseen.length);
    this.#client.close(FilterClose.NoFlush, details);
    return FilterStatus.Stop;
  }
}

function allowed(hook: HookName): string {
  return hook === 'onData' ? "nothing, 'more' and 'done'" : "nothing and 'more'";
}

class ConnectionContext extends StreamScope implements Api {
  readonly config: unknown;
  /** The next filters have the connection. */
  isPassedOn = false;
  readonly #shared: SharedByConnections;
  readonly #client: FilteredClient;

  constructor(shared: SharedByConnections, client: FilteredClient, config: unknown, owner: ScopeOwner) {
    super(shared, owner);
    this.#shared = shared;
    this.#client = client;
    this.config = config;
  }

  get connection(): ConnectionFacts {
    const { localText, remoteText, security, serial } = this.#client;
    return connectionFacts(serial, {
      downstreamRemoteAddress: remoteText,
      downstreamLocalAddress: localText,
      downstreamSecurity: security,
    });
  }

  setCluster(name: string): void {
    if (this.isPassedOn)
      throw new Error("setCluster(): the connection was passed on; onConnection can hold it for onData: return 'more'");
    if (!this.#shared.hasCluster(name)) throw new Error(`setCluster(): there is no cluster '${name}'`);
    this.#client.setCluster(name);
  }

  close(details = 'script_closed'): void {
    if (this.#client.isClosed) return;
    this.#shared.beginTurn();
    this.#shared.stats.increment(at.replies);
    this.#client.close(FilterClose.Flush, details);
  }
}
