// Checks a host by HTTP requests: evaluates the status of the response and, optionally, its service name and its body.

import { headerKey } from '../../common/text/header-names.js';
import type { RequestEncoder } from '../../http/codec/streams.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import type { RuntimeFraction } from '../../runtime/runtime.js';
import type { CallingThread } from '../calling-thread.js';
import type { CheckTarget } from './check-target.js';
import type { OnChecked } from './checker.js';
import { type HttpCheckSpec, isInRanges } from './health-check-spec.js';
import { Outcome } from './host-health.js';
import { PayloadSearch } from './payload-search.js';
import { CHECKS_USER_AGENT, StreamChecker } from './stream-checker.js';

export interface HttpCheckerOptions {
  readonly spec: HttpCheckSpec;
  readonly timeoutMs: number;
  /** Host field of this endpoint; '': that of the checks. */
  readonly hostname: string;
  /** Whether the service name of a response is verified. */
  readonly verifiesService: RuntimeFraction;
  /** Called when a response's service name is verified. */
  readonly onVerified: () => void;
}

export class HttpChecker extends StreamChecker {
  readonly #options: HttpCheckerOptions;
  /** The outcome by the response head. */
  #outcome: Outcome = Outcome.Failed;
  #reason = '';
  #status = 0;
  /** Undefined: the body of this response is ignored. */
  #search: PayloadSearch | undefined;
  #searchedBytes = 0;
  #isFound = false;

  constructor(caller: CallingThread, target: CheckTarget, options: HttpCheckerOptions, onChecked: OnChecked) {
    super(caller, target, options.timeoutMs, onChecked);
    this.#options = options;
  }

  protected request(head: HeaderBlock, encoder: RequestEncoder): void {
    const { hostname, spec } = this.#options;
    head.setMethod(spec.method, spec.methodText);
    head.setPath(spec.path);
    head.add(HOST, hostname || spec.host);
    head.add(USER_AGENT, CHECKS_USER_AGENT);
    spec.headers?.apply(head, undefined);
    const { send } = spec;
    if (send === undefined) return encoder.headers(head, true);
    head.add(CONTENT_LENGTH, String(send.length));
    encoder.headers(head, false);
    const { memory } = this.thread;
    for (let at = 0; at < send.length; at += PIECE) {
      const piece = send.subarray(at, at + PIECE);
      const offset = memory.scratch(piece.length);
      memory.bytes.set(piece, offset);
      encoder.data(offset, piece.length, at + PIECE >= send.length);
    }
  }

  protected responded(headers: HeaderBlock, endStream: boolean): void {
    this.#judge(headers);
    const { receive } = this.#options.spec;
    const isPassed = this.#outcome === Outcome.Passed || this.#outcome === Outcome.Degraded;
    this.#search = isPassed && receive.length > 0 ? new PayloadSearch(receive) : undefined;
    this.#searchedBytes = 0;
    this.#isFound = false;
    if (endStream) this.#complete();
  }

  onData(offset: number, length: number, endStream: boolean): void {
    if (this.#search !== undefined && !this.#isFound) this.#searchBody(this.#search, offset, length);
    if (endStream) this.#complete();
  }

  onTrailers(): void {
    this.#complete();
  }

  #searchBody(search: PayloadSearch, offset: number, length: number): void {
    const bytes = Math.min(length, this.#options.spec.searchedBytes - this.#searchedBytes);
    this.#searchedBytes += bytes;
    if (bytes > 0) this.#isFound = search.take(this.thread.memory.bytes.subarray(offset, offset + bytes));
  }

  #complete(): void {
    if (this.#search === undefined || this.#isFound) return this.ended(this.#outcome, this.#reason, this.#status);
    this.#search = undefined;
    this.ended(Outcome.Failed, `${this.#reason} without the expected body`, this.#status);
  }

  #judge(headers: HeaderBlock): void {
    const { spec } = this.#options;
    const { status } = headers;
    this.#status = status;
    this.#reason = `it has answered ${status}`;
    if (!isInRanges(status, spec.expected)) {
      this.#outcome = isInRanges(status, spec.retriable) ? Outcome.FailedRetriably : Outcome.Failed;
    } else if (!this.#isOfService(headers)) {
      this.#outcome = Outcome.Failed;
      const service = headers.get(HEALTHCHECKED_CLUSTER);
      this.#reason =
        service === undefined ? 'it does not say which service it is of' : `it is of the service '${oneLine(service)}'`;
    } else {
      this.#outcome = headers.find(DEGRADED) >= 0 ? Outcome.Degraded : Outcome.Passed;
    }
  }

  #isOfService(headers: HeaderBlock): boolean {
    const { onVerified, spec, verifiesService } = this.#options;
    const { service } = spec;
    if (service === undefined || !verifiesService.isHit(this.thread.random)) return true;
    onVerified();
    const index = headers.findValue(HEALTHCHECKED_CLUSTER);
    if (index < 0) return service.matches(headers.memory, 0, 0);
    return service.matches(headers.memory, headers.valueStart(index), headers.valueEnd(index));
  }
}

/** Makes a host's text safe for the log. */
function oneLine(text: string): string {
  return text.replace(/[^ -~]/g, '?').slice(0, 100);
}

/** Bytes of one piece of the request's body. */
const PIECE = 16 * 1024;
const HOST = headerKey('host');
const CONTENT_LENGTH = headerKey('content-length');
const USER_AGENT = headerKey('user-agent');
const DEGRADED = headerKey('x-envoy-degraded');
const HEALTHCHECKED_CLUSTER = headerKey('x-envoy-upstream-healthchecked-cluster');
