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
  isServerError,
  knownHeader,
  type LocalReply,
  ResponseFlag,
  type Scope,
  type StreamControl,
  shownName,
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
  /** Fields of the answer that the host gets in place of the client's (of several with one name the last), and behind those of the client. */
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
      if (!request.isRemoved(index) && this.#isSent(request, index)) addJoined(head, fieldAt(request, index));
    }
    for (const { key, value } of added) head.set(key, value);
  }

  #isSent(request: HeaderBlock, index: number): boolean {
    const id = request.id(index);
    if (isFraming(request, index) || isOfQuestions(request, index)) return false;
    const { notSent, sent } = this.#rules;
    if (id === HOST) return true;
    if (notSent?.take(request, index) === true) return false;
    return id === AUTHORIZATION || sent?.take(request, index) === true;
  }

  // ── The answer ───────────────────────────────────────────────────────────────────────────────────────────────────

  onHead(answer: HeaderBlock): void {
    this.#stream.run(() => {
      if (answer.status === OK) this.#consent = consentOf(answer, this.#rules);
      else if (!isServerError(answer.status)) this.#keepOfRefusal(answer);
    });
  }

  onAnswer({ body, status }: HttpCallAnswer): void {
    this.#call = undefined;
    this.#stream.run(() => {
      if (status === OK) this.#allow();
      else if (isServerError(status)) this.#failed();
      else this.#deny(status, body);
    });
  }

  onFailure(reason: string): void {
    this.#call = undefined;
    if (logger.isDebug) logger.debug(`no authorization from cluster '${shownName(this.#cluster.name)}': ${reason}`);
    this.#stream.run(() => this.#failed());
  }

  #allow(): void {
    const { removed, toClient, toHost, toHostAppended } = this.#consent!;
    for (const { key, value } of toHost) this.#headers.set(key, value);
    for (const field of toHostAppended) append(this.#headers, field);
    // Last: the service can take back what it has said itself.
    for (const key of removed) this.#headers.remove(key);
    this.#forClient = toClient;
    this.#count('ok');
    this.#goOn();
  }

  /** What the client gets of the service's refusal. */
  #keepOfRefusal(answer: HeaderBlock): void {
    const { toClient } = this.#rules;
    this.#forClient = fieldsOf(
      answer,
      (index) => toClient === undefined || toClient.take(answer, index) || isOfRefusals(answer, index),
    );
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
    toHost: taken(answer, rules.toHost),
    toHostAppended: taken(answer, rules.toHostAppended),
    toClient: taken(answer, rules.toClientOnSuccess),
  };
}

/** All lines of it count. */
function removedBy(answer: HeaderBlock): HeaderKey[] {
  const keys: HeaderKey[] = [];
  for (let index = answer.find(TO_REMOVE); index >= 0; index = answer.findNext(TO_REMOVE, index)) {
    for (const each of answer.value(index).toLowerCase().split(',')) {
      const name = each.trim();
      if (name !== '' && name !== 'host' && !name.startsWith(':')) keys.push(headerKey(name));
    }
  }
  return keys;
}

/** The fields that may be passed on, one for each value; `takes` says of which. */
function fieldsOf(answer: HeaderBlock, takes: (index: number) => boolean): readonly Field[] {
  const fields: Field[] = [];
  for (let index = 0; index < answer.size; index++) {
    if (!isOfMessage(answer, index) || !takes(index)) continue;
    const field = fieldAt(answer, index);
    if ((field.key.joinedIn & answer.kind) === 0) fields.push(field);
    else if (answer.find(field.key) === index) fields.push({ key: field.key, value: answer.get(field.key)! });
  }
  return fields;
}

function taken(answer: HeaderBlock, rules: NameRules | undefined): readonly Field[] {
  return rules === undefined ? NO_FIELDS : fieldsOf(answer, (index) => rules.take(answer, index));
}

function fieldAt(headers: HeaderBlock, index: number): Field {
  return { key: headerKey(headers.name(index)), value: headers.value(index) };
}

/**
 * Adds a field, or its value to the field that has come before: as in Envoy the service gets one line of each name, so that it cannot
 * take the first of several for all. Those of a cookie are joined as RFC 9113 section 8.2.3 does, with which each is still seen.
 */
function addJoined(head: HeaderBlock, { key, value }: Field): void {
  const former = head.get(key);
  const isJoined = (key.joinedIn & head.kind) !== 0;
  if (former !== undefined && isJoined && (former === '' || value === '')) return head.set(key, former + value);
  head.set(key, former === undefined ? value : `${former}${key.id === COOKIE ? '; ' : ','}${value}`);
}

/** Behind those that are there, on a line of its own, except where the fields of the name are one value. */
function append(headers: HeaderBlock, { key, value }: Field): void {
  const former = (key.joinedIn & headers.kind) === 0 ? '' : (headers.get(key) ?? '');
  if (former === '') headers.add(key, value);
  else headers.set(key, `${former},${value}`);
}

/** A field of an answer that may be passed on: it is none of the connection, nor for the filter itself. */
function isOfMessage(answer: HeaderBlock, index: number): boolean {
  return !answer.isRemoved(index) && !isFraming(answer, index) && answer.name(index) !== TO_REMOVE.name;
}

/** What only the filter says to the service: that it gets but a part of the body. */
function isOfQuestions(request: HeaderBlock, index: number): boolean {
  return request.name(index) === PARTIAL_BODY;
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
const COOKIE = knownHeader('cookie');
const TO_REMOVE = headerKey('x-envoy-auth-headers-to-remove');
const PARTIAL_BODY = 'x-envoy-auth-partial-body';
const ALLOWED_ON_ERROR = headerKey('x-envoy-auth-failure-mode-allowed');
