// Checks a host by HTTP requests: evaluates the status of the response and, optionally, its service name.

import { headerKey } from '../../common/text/header-names.js';
import type { RequestEncoder } from '../../http/codec/streams.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import type { RuntimeFraction } from '../../runtime/runtime.js';
import type { CallingThread } from '../calling-thread.js';
import type { CheckTarget } from './check-target.js';
import type { OnChecked } from './checker.js';
import { type HttpCheckSpec, isInRanges } from './health-check-spec.js';
import { Outcome } from './host-health.js';
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
    encoder.headers(head, true);
  }

  protected responded(headers: HeaderBlock, endStream: boolean): void {
    this.#judge(headers);
    if (endStream) this.ended(this.#outcome, this.#reason, this.#status);
  }

  onData(_offset: number, _length: number, endStream: boolean): void {
    if (endStream) this.ended(this.#outcome, this.#reason, this.#status);
  }

  onTrailers(): void {
    this.ended(this.#outcome, this.#reason, this.#status);
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

const HOST = headerKey('host');
const USER_AGENT = headerKey('user-agent');
const DEGRADED = headerKey('x-envoy-degraded');
const HEALTHCHECKED_CLUSTER = headerKey('x-envoy-upstream-healthchecked-cluster');
