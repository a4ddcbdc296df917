// One request that waits for its authorization: the question, and what becomes of the answer.

import {
  type CallingThread,
  type Cluster,
  type ClusterReference,
  getLogger,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  HttpCall,
  type HttpCallAnswer,
  type HttpCallEvents,
  type HttpCallRequest,
  type HttpFilter,
  headerKey,
  knownHeader,
  type LocalReply,
  ResponseFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { ClusterOutcomes, Outcome } from './cluster-outcomes.js';
import type { NameRules } from './name-rules.js';
import { ExtAuthzStats } from './stats.js';

/** The configuration, compiled: one a filter chain and worker. */
export interface ExtAuthzRules {
  readonly timeoutMs: number;
  readonly pathPrefix: string;
  /** Fields of the request that the service gets besides host and authorization. */
  readonly sent: NameRules | undefined;
  readonly notSent: NameRules | undefined;
  readonly added: readonly Field[];
  /** Fields of the answer that the host gets in place of the client's, and behind those of the client. */
  readonly toHost: NameRules | undefined;
  readonly toHostAppended: NameRules | undefined;
  /** Fields of a refusal that the client gets; undefined: all. */
  readonly toClient: NameRules | undefined;
  /** Fields of the answer that are added to the response of the host. */
  readonly toClientOnSuccess: NameRules | undefined;
  readonly statusOnError: number;
  readonly allowsOnError: boolean;
  readonly marksAllowedOnError: boolean;
}

/** What an answer that allows a request does to it. */
interface Consent {
  readonly removed: readonly HeaderKey[];
  readonly toHost: readonly Field[];
  readonly toHostAppended: readonly Field[];
  readonly toClient: readonly Field[];
}

interface Field {
  readonly key: HeaderKey;
  /** One character a byte. */
  readonly value: string;
}

const logger = getLogger('ext_authz');
const { at } = ExtAuthzStats;
const OK = 200;
const NO_FIELDS: readonly Field[] = [];
const NO_BODY: readonly Uint8Array[] = [];

export class ExtAuthzFilter implements HttpFilter, HttpCallRequest, HttpCallEvents {
  readonly body = NO_BODY;
  readonly timeoutMs: number;
  readonly #stream: StreamControl;
  readonly #rules: ExtAuthzRules;
  readonly #calls: CallingThread;
  readonly #cluster: ClusterReference;
  readonly #stats: Scope;
  readonly #outcomes: ClusterOutcomes;
  /** Where the request goes if it may: it counts the outcome too. */
  #target: Cluster | undefined;
  #call: HttpCall | undefined;
  /** What came with the service's consent, which counts when all of the answer is there. */
  #consent: Consent | undefined;
  /** Of the request, which is held until the answer is there. */
  #headers!: HeaderBlock;
  /** Of the answer: what goes to the client, now or with the response. */
  #forClient: readonly Field[] = NO_FIELDS;

  constructor(
    stream: StreamControl,
    rules: ExtAuthzRules,
    calls: CallingThread,
    cluster: ClusterReference,
    stats: Scope,
    outcomes: ClusterOutcomes,
  ) {
    this.timeoutMs = rules.timeoutMs;
    this.#stream = stream;
    this.#rules = rules;
    this.#calls = calls;
    this.#cluster = cluster;
    this.#stats = stats;
    this.#outcomes = outcomes;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    this.#headers = headers;
    this.#target = (this.#stream.route()?.cluster as ClusterReference | undefined)?.current;
    // The body stays with the client: it may be longer than what can be held.
    this.#stream.pauseRequest();
    this.#call = HttpCall.start(this.#calls, this.#cluster.current, this, this);
    return HeadersStatus.StopIteration;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    addAll(headers, this.#forClient);
    return HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#call?.cancel();
    this.#call = undefined;
  }

  // ── The question ─────────────────────────────────────────────────────────────────────────────────────────────────

  writeHead(head: HeaderBlock): void {
    const request = this.#headers;
    const { added, pathPrefix } = this.#rules;
    head.setMethod(request.method, request.methodText());
    head.setPath(pathPrefix + request.pathText());
    for (let index = 0; index < request.size; index++) {
      if (!request.isRemoved(index) && this.#isSent(request, index)) {
        head.add(headerKey(request.name(index)), request.value(index));
      }
    }
    for (const { key, value } of added) head.set(key, value);
  }

  #isSent(request: HeaderBlock, index: number): boolean {
    const id = request.id(index);
    if (isFraming(request, index)) return false;
    const { notSent, sent } = this.#rules;
    if (id === HOST) return true;
    if (notSent?.take(request, index) === true) return false;
    return id === AUTHORIZATION || sent?.take(request, index) === true;
  }

  // ── The answer ───────────────────────────────────────────────────────────────────────────────────────────────────

  onHead(answer: HeaderBlock): void {
    this.#stream.run(() => {
      if (answer.status === OK) this.#consent = consentOf(answer, this.#rules);
      else if (answer.status < 500) this.#keepOfRefusal(answer);
    });
  }

  onAnswer({ body, status }: HttpCallAnswer): void {
    this.#call = undefined;
    this.#stream.run(() => {
      if (status === OK) this.#allow();
      else if (status >= 500) this.#failed();
      else this.#deny(status, body);
    });
  }

  onFailure(reason: string): void {
    this.#call = undefined;
    if (logger.isDebug) logger.debug(`no authorization from cluster '${this.#cluster.name}': ${reason}`);
    this.#stream.run(() => this.#failed());
  }

  #allow(): void {
    const { removed, toClient, toHost, toHostAppended } = this.#consent!;
    for (const key of removed) this.#headers.remove(key);
    for (const { key } of toHost) this.#headers.remove(key);
    addAll(this.#headers, toHost);
    for (const { key, value } of toHostAppended) this.#append(key, value);
    this.#forClient = toClient;
    this.#count('ok');
    this.#goOn();
  }

  /** Behind a value that is there already. */
  #append(key: HeaderKey, value: string): void {
    const own = this.#headers.get(key);
    if (own !== undefined) this.#headers.set(key, `${own},${value}`);
  }

  /** What the client gets of the service's refusal. */
  #keepOfRefusal(answer: HeaderBlock): void {
    const { toClient } = this.#rules;
    const fields: Field[] = [];
    for (let index = 0; index < answer.size; index++) {
      if (answer.isRemoved(index) || isFraming(answer, index) || answer.id(index) === HOST) continue;
      if (toClient === undefined || toClient.take(answer, index) || isOfRefusals(answer, index)) {
        fields.push(fieldAt(answer, index));
      }
    }
    this.#forClient = fields;
  }

  #goOn(): void {
    // First the head: what came with it would be held behind it.
    this.#stream.continueDecoding();
    this.#stream.resumeRequest();
  }

  #deny(status: number, body: Uint8Array): void {
    const fields = this.#forClient;
    this.#forClient = NO_FIELDS;
    this.#count('denied');
    // As in Envoy, as if a host of it had answered an internal request.
    this.#target?.responses.countResponse(status, true, undefined, false);
    // As it is made: its content-type takes the place of that of a text.
    const editHeaders = (headers: HeaderBlock) => addAll(headers, fields);
    this.#reply({ status, body, details: 'ext_authz_denied', editHeaders });
  }

  #failed(): void {
    const { allowsOnError, marksAllowedOnError, statusOnError } = this.#rules;
    this.#count('error');
    if (!allowsOnError) return this.#reply({ status: statusOnError, body: '', details: 'ext_authz_error' });
    if (marksAllowedOnError) this.#headers.add(ALLOWED_ON_ERROR, 'true');
    this.#count('failure_mode_allowed');
    this.#goOn();
  }

  #count(outcome: Outcome): void {
    this.#stats.increment(at[outcome]);
    if (this.#target !== undefined) this.#outcomes.count(this.#target, outcome);
  }

  #reply(reply: Omit<LocalReply, 'flags'>): void {
    this.#stream.sendLocalReply({ ...reply, flags: ResponseFlag.UnauthorizedExternalService });
  }
}

function addAll(headers: HeaderBlock, fields: readonly Field[]): void {
  for (const { key, value } of fields) headers.add(key, value);
}

function consentOf(answer: HeaderBlock, rules: ExtAuthzRules): Consent {
  return {
    removed: removedBy(answer),
    toHost: fieldsOf(answer, rules.toHost),
    toHostAppended: fieldsOf(answer, rules.toHostAppended),
    toClient: fieldsOf(answer, rules.toClientOnSuccess),
  };
}

function removedBy(answer: HeaderBlock): HeaderKey[] {
  const names = answer.get(TO_REMOVE)?.toLowerCase().split(',') ?? [];
  const trimmed = names.map((name) => name.trim());
  return trimmed.filter((name) => name !== '' && name !== 'host' && !name.startsWith(':')).map(headerKey);
}

function fieldsOf(answer: HeaderBlock, rules: NameRules | undefined): readonly Field[] {
  if (rules === undefined) return NO_FIELDS;
  const fields: Field[] = [];
  for (let index = 0; index < answer.size; index++) {
    if (answer.isRemoved(index) || isFraming(answer, index) || !rules.take(answer, index)) continue;
    fields.push(fieldAt(answer, index));
  }
  return fields;
}

function fieldAt(headers: HeaderBlock, index: number): Field {
  return { key: headerKey(headers.name(index)), value: headers.value(index) };
}

/** Fields that speak of one connection or one body. */
function isFraming(headers: HeaderBlock, index: number): boolean {
  return FRAMING.has(headers.name(index));
}

/** What a refusal needs, whatever the list for the client says. */
function isOfRefusals(headers: HeaderBlock, index: number): boolean {
  const name = headers.name(index);
  return name === 'www-authenticate' || name === 'location';
}

const FRAMING: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const HOST = knownHeader('host');
const AUTHORIZATION = knownHeader('authorization');
const TO_REMOVE = headerKey('x-envoy-auth-headers-to-remove');
const ALLOWED_ON_ERROR = headerKey('x-envoy-auth-failure-mode-allowed');
