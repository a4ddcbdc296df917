// The ext_authz filter of one request with an HTTP service: sends the authorization request and applies the response.

import {
  type CallingThread,
  type ClusterReference,
  getLogger,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpCallAnswer,
  type HttpCallEvents,
  type HttpCallRequest,
  headerKey,
  isServerError,
  type Json,
  knownHeader,
  type RetryPolicy,
  type RunningCall,
  type StreamControl,
  type Struct,
  shownName,
  startHttpCall,
} from '../../../sdk.js';
import { isFraming } from '../../common/framing.js';
import { type MutationRules, Verdict } from '../../common/mutation-rules.js';
import {
  AuthorizationFilter,
  type CommonRules,
  type Counting,
  type Field,
  type RequestRules,
} from './authorization-filter.js';
import type { NameRules } from './name-rules.js';
import type { RequestBody } from './request-body.js';

/** The compiled configuration, one per filter chain and worker. */
export interface ExtAuthzRules extends CommonRules {
  readonly timeoutMs: number;
  /** Undefined: calls are not retried. */
  readonly retries: RetryPolicy | undefined;
  readonly pathPrefix: string;
  /** Replaces the path of the request; '': it does not. */
  readonly pathOverride: string;
  /** The service gets all fields that `notSent` does not match. */
  readonly sendsAll: boolean;
  /** Fields of the request that the service gets in addition to host and authorization. */
  readonly sent: NameRules | undefined;
  readonly notSent: NameRules | undefined;
  readonly added: readonly Field[];
  /**
   * Fields of the response for the upstream request: `toHost` replace the client's fields (the last one of each name),
   * `toHostAppended` are added to them.
   */
  readonly toHost: NameRules | undefined;
  readonly toHostAppended: NameRules | undefined;
  /** Fields of a denial that the client gets; undefined: all. */
  readonly toClient: NameRules | undefined;
  /** Fields of the response that are added to the host's response. */
  readonly toClientOnSuccess: NameRules | undefined;
  /** Fields of the response that become dynamic metadata. */
  readonly toMetadata: NameRules | undefined;
  /** Decide which fields of the upstream request may change; undefined: all. */
  readonly mutations: MutationRules | undefined;
}

/** The changes that an allowing response makes. */
interface Approval {
  readonly removed: readonly HeaderKey[];
  readonly toHost: readonly Field[];
  readonly toHostAppended: readonly Field[];
  readonly toClient: readonly Field[];
}

const logger = getLogger('ext_authz');
const OK = 200;
const NO_FIELDS: readonly Field[] = [];
const NO_BODY: readonly Uint8Array[] = [];

export class ExtAuthzFilter extends AuthorizationFilter implements HttpCallRequest, HttpCallEvents {
  body = NO_BODY;
  readonly timeoutMs: number;
  readonly #rules: ExtAuthzRules;
  readonly #calls: CallingThread;
  readonly #cluster: ClusterReference;
  #call: RunningCall | undefined;
  /** Undefined: the service gets no body. */
  #isPartial: boolean | undefined;
  #metadata: Struct | undefined;
  /** The changes in the head of an allowing response, which apply when it is complete; undefined: one of them is forbidden. */
  #approval: Approval | undefined;
  /** Fields of the authorization response for the client: for the denial, or for the host's response. */
  #forClient: readonly Field[] = NO_FIELDS;

  constructor(
    stream: StreamControl,
    rules: ExtAuthzRules,
    calls: CallingThread,
    cluster: ClusterReference,
    request: RequestRules,
    counting: Counting,
  ) {
    super(stream, rules, request, counting);
    this.timeoutMs = rules.timeoutMs;
    this.#rules = rules;
    this.#calls = calls;
    this.#cluster = cluster;
  }

  protected ask(body: RequestBody | undefined): void {
    if (body !== undefined) {
      this.body = body.bytes.length === 0 ? NO_BODY : [body.bytes];
      this.#isPartial = body.isPartial;
    }
    this.#call = startHttpCall(this.#calls, this.#cluster, this, this, this.#rules.retries);
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    addAll(headers, this.#forClient);
    return HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#call?.cancel();
    this.#call = undefined;
  }

  // ── The authorization request ────────────────────────────────────────────────────────────────────────────────────

  writeHead(head: HeaderBlock): void {
    const request = this.headers;
    const { added, pathOverride, pathPrefix } = this.#rules;
    head.setMethod(request.method, request.methodText());
    head.setPath(pathOverride === '' ? pathPrefix + request.pathText() : pathOverride);
    for (let index = 0; index < request.size; index++) {
      if (!request.isRemoved(index) && this.#isSent(request, index)) addJoined(head, fieldAt(request, index));
    }
    if (this.#isPartial !== undefined) head.set(PARTIAL_BODY_KEY, String(this.#isPartial));
    for (const { key, value } of added) head.set(key, value);
  }

  #isSent(request: HeaderBlock, index: number): boolean {
    const id = request.id(index);
    if (isFraming(request.name(index)) || isReserved(request, index)) return false;
    const { notSent, sendsAll, sent } = this.#rules;
    if (id === HOST) return true;
    if (notSent?.take(request, index) === true) return false;
    return sendsAll || id === AUTHORIZATION || sent?.take(request, index) === true;
  }

  // ── The authorization response ───────────────────────────────────────────────────────────────────────────────────

  onHead(answer: HeaderBlock): void {
    this.stream.run(() => {
      if (!isServerError(answer.status)) this.#metadata = metadataOf(answer, this.#rules.toMetadata);
      if (answer.status === OK) this.#approval = approvalOf(answer, this.#rules);
      else if (!isServerError(answer.status)) this.#keepDenialFields(answer);
    });
  }

  onAnswer({ body, status }: HttpCallAnswer): void {
    this.#call = undefined;
    this.stream.run(() => {
      if (status === OK) this.#allow();
      else if (isServerError(status)) this.failed();
      else this.#deny(status, body);
    });
  }

  onFailure(reason: string): void {
    this.#call = undefined;
    if (logger.isDebug) logger.debug(`no authorization from cluster '${shownName(this.#cluster.name)}': ${reason}`);
    this.stream.run(() => this.failed());
  }

  #allow(): void {
    this.takeMetadata(this.#metadata, true);
    if (this.#approval === undefined) return this.refuse(false);
    const { removed, toClient, toHost, toHostAppended } = this.#approval;
    for (const { key, value } of toHost) this.headers.set(key, value);
    for (const field of toHostAppended) append(this.headers, field);
    // Last, so that this also removes fields that the service has set.
    for (const key of removed) this.headers.remove(key);
    this.#forClient = toClient;
    this.allowed([...toHost, ...toHostAppended].map(({ key }) => key.name).concat(removed.map(({ name }) => name)));
  }

  /** Keeps the fields of a denial that the client gets. */
  #keepDenialFields(answer: HeaderBlock): void {
    const { toClient } = this.#rules;
    this.#forClient = fieldsOf(
      answer,
      (index) => toClient === undefined || toClient.take(answer, index) || isRequiredForDenial(answer, index),
    );
  }

  #deny(status: number, body: Uint8Array): void {
    const fields = this.#forClient;
    this.#forClient = NO_FIELDS;
    this.takeMetadata(this.#metadata, false);
    this.deny(
      status,
      body,
      (headers) => addAll(headers, fields),
      () => fields.map(({ key, value }) => ({ key: key.name, value })),
    );
  }
}

export function addAll(headers: HeaderBlock, fields: readonly Field[]): void {
  for (const { key, value } of fields) headers.add(key, value);
}

/** Returns the permitted changes; undefined: there is one that is an error. */
function approvalOf(answer: HeaderBlock, rules: ExtAuthzRules): Approval | undefined {
  const { mutations } = rules;
  const nameOf = ({ key }: Field) => key.name;
  const toHost = permitted(fieldsMatching(answer, rules.toHost), nameOf, false, mutations);
  const toHostAppended = permitted(fieldsMatching(answer, rules.toHostAppended), nameOf, false, mutations);
  const removed = permitted(removedBy(answer), ({ name }) => name, true, mutations);
  if (toHost === undefined || toHostAppended === undefined || removed === undefined) return undefined;
  return { removed, toHost, toHostAppended, toClient: fieldsMatching(answer, rules.toClientOnSuccess) };
}

/** Returns the changes without those that are to be ignored; undefined: there is one that is an error. */
function permitted<T>(
  changes: readonly T[],
  nameOf: (change: T) => string,
  isRemoval: boolean,
  rules: MutationRules | undefined,
): readonly T[] | undefined {
  if (rules === undefined) return changes;
  const kept: T[] = [];
  for (const change of changes) {
    const verdict = rules.check(nameOf(change), isRemoval);
    if (verdict === Verdict.Error) return undefined;
    if (verdict === Verdict.Allowed) kept.push(change);
  }
  return kept;
}

/** Returns the last value of each name that the rules take; undefined if there is none. */
function metadataOf(answer: HeaderBlock, rules: NameRules | undefined): Struct | undefined {
  if (rules === undefined) return undefined;
  const struct: Record<string, Json> = { __proto__: null } as unknown as Record<string, Json>;
  for (let index = 0; index < answer.size; index++)
    if (!answer.isRemoved(index) && rules.take(answer, index))
      struct[answer.name(index)] = Buffer.from(answer.value(index), 'latin1').toString();
  return Object.keys(struct).length === 0 ? undefined : struct;
}

/** Returns the field names in all lines of x-envoy-auth-headers-to-remove. */
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

/** Returns the fields that may be passed on and that `takes` accepts. Values of one list field are joined. */
function fieldsOf(answer: HeaderBlock, takes: (index: number) => boolean): readonly Field[] {
  const fields: Field[] = [];
  for (let index = 0; index < answer.size; index++) {
    if (!isForwardable(answer, index) || !takes(index)) continue;
    const field = fieldAt(answer, index);
    if ((field.key.joinedIn & answer.kind) === 0) fields.push(field);
    else if (answer.find(field.key) === index) fields.push({ key: field.key, value: answer.get(field.key)! });
  }
  return fields;
}

function fieldsMatching(answer: HeaderBlock, rules: NameRules | undefined): readonly Field[] {
  return rules === undefined ? NO_FIELDS : fieldsOf(answer, (index) => rules.take(answer, index));
}

function fieldAt(headers: HeaderBlock, index: number): Field {
  return { key: headerKey(headers.name(index)), value: headers.value(index) };
}

/**
 * Adds a field, or joins its value to an earlier field of that name: the service gets one line per name, as in Envoy, so that it
 * cannot mistake the first of several for all. Cookies are joined as in RFC 9113, section 8.2.3, which keeps each of them.
 */
function addJoined(head: HeaderBlock, { key, value }: Field): void {
  const former = head.get(key);
  const isJoined = (key.joinedIn & head.kind) !== 0;
  if (former !== undefined && isJoined && (former === '' || value === '')) return head.set(key, former + value);
  head.set(key, former === undefined ? value : `${former}${key.id === COOKIE ? '; ' : ','}${value}`);
}

/** Appends a field as a separate line, or joins the value if fields of this name form one list. */
function append(headers: HeaderBlock, { key, value }: Field): void {
  const former = (key.joinedIn & headers.kind) === 0 ? '' : (headers.get(key) ?? '');
  if (former === '') headers.add(key, value);
  else headers.set(key, `${former},${value}`);
}

/** Returns whether a response field may be passed on: it is neither hop-by-hop nor for the filter itself. */
function isForwardable(answer: HeaderBlock, index: number): boolean {
  return !answer.isRemoved(index) && !isFraming(answer.name(index)) && answer.name(index) !== TO_REMOVE.name;
}

/** Returns whether only the filter itself may send this field: it announces a partial body. */
function isReserved(request: HeaderBlock, index: number): boolean {
  return request.name(index) === PARTIAL_BODY;
}

/** Returns whether a denial always needs this field. */
function isRequiredForDenial(headers: HeaderBlock, index: number): boolean {
  const name = headers.name(index);
  return name === 'www-authenticate' || name === 'location';
}

const HOST = knownHeader('host');
const AUTHORIZATION = knownHeader('authorization');
const COOKIE = knownHeader('cookie');
const TO_REMOVE = headerKey('x-envoy-auth-headers-to-remove');
const PARTIAL_BODY = 'x-envoy-auth-partial-body';
const PARTIAL_BODY_KEY = headerKey(PARTIAL_BODY);
