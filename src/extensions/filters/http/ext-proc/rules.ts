// The compiled configuration of the filter, one per filter chain, route and worker.

import type {
  ExternalProcessor,
  ExtProcOverrides,
  GrpcService,
  HeaderValue,
  MetadataOptions,
} from '../../../../config/generated/api.js';
import { GrpcChannel } from '../../../grpc-sdk.js';
import {
  durationMs,
  errorStatus,
  type HeaderBlock,
  type HttpChainContext,
  HttpService,
  type Memory,
  type Scope,
  type StreamInfo,
  type Timers,
  type WorkerContext,
} from '../../../sdk.js';
import { MutationRules } from '../../common/mutation-rules.js';
import { type HeaderMutation, prepareAnswers } from './answer.js';
import { AttributeList } from './attributes.js';
import type { CallRecord } from './call-record.js';
import { ForwardRules } from './forward-rules.js';
import { applyMutation, type ChangeRules } from './head-changes.js';
import { HttpProcessor, prepareQuestions } from './http-processor.js';
import { compileMode, hasConversation, headsOf, type Mode } from './modes.js';
import { type ProcessorEvents, type ProcessorStream, startGrpcStream } from './processor-stream.js';
import type { QuestionRules } from './question.js';

/** Of one answer, unless message_timeout is set. */
const MESSAGE_TIMEOUT_MS = 200;
const CLOSE_AFTER_MS = 5000;
/** Limit of the pieces of a body that wait for the processor or the next hop. */
const MAX_QUEUED_BYTES = 256 * 1024;

export const enum RouteAction {
  /** The answer decides. */
  AsAnswered = 0,
  /** The route is chosen again after each change. */
  Always = 1,
  Never = 2,
}

export interface Rules {
  readonly mode: Mode;
  readonly question: QuestionRules;
  /** Namespaces of the dynamic metadata that the processor may set. */
  readonly receives: ReadonlySet<string>;
  readonly requestAttributes: AttributeList;
  readonly responseAttributes: AttributeList;
  /** Undefined: answers do not change the mode. Empty: to any mode. */
  readonly overrides: readonly Mode[] | undefined;
  /** The processor is not waited for. */
  readonly isObserving: boolean;
  /** Until the end of the stream to an observer, from that of the request on. */
  readonly closeAfterMs: number;
  /** Bodies are streamed before the answer about their head. */
  readonly sendsEarly: boolean;
  readonly failsOpen: boolean;
  readonly errorStatus: number;
  readonly messageTimeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly routeAction: RouteAction;
  readonly refusesImmediate: boolean;
  /** See MAX_QUEUED_BYTES. */
  readonly maxQueuedBytes: number;
  readonly bufferLimit: number;
  /** Of the record in the filter state. */
  readonly stateKey: string;
  /** Of the processor. */
  readonly cluster: string;
  readonly stats: Scope;
  readonly memory: Memory;
  readonly timers: Timers;
  readonly nowMs: () => number;
  /** Each question is a request of HTTP. */
  readonly isHttp: boolean;
  start(info: StreamInfo, record: CallRecord, events: ProcessorEvents): ProcessorStream | undefined;
  change(block: HeaderBlock, mutation: HeaderMutation, how: Omit<ChangeRules, 'rules'>): string | undefined;
}

/** Compiles a configuration that validate() has accepted. */
export function compileRules(
  config: ExternalProcessor,
  context: WorkerContext,
  chain: HttpChainContext,
  stats: Scope,
  overrides: ExtProcOverrides = {},
): Rules {
  const { clock, memory, timers } = context;
  const metadata = mergedMetadata(config.metadata_options, overrides.metadata_options);
  const mutation = new MutationRules(config.mutation_rules ?? {}, '');
  const { cluster, isHttp, start } = processorOf(config, overrides, context);
  const mode = compileMode(overrides.processing_mode ?? config.processing_mode);
  // Now, because it takes longer than an answer may.
  prepareAnswers();
  if (isHttp) prepareQuestions();
  return {
    mode: isHttp ? headsOf(mode) : mode,
    question: {
      forwarded: config.forward_rules && new ForwardRules(config.forward_rules, ''),
      namespaces: metadata.forwarding_namespaces?.untyped ?? [],
      isObserved: config.observability_mode ?? false,
    },
    receives: new Set(metadata.receiving_namespaces?.untyped),
    requestAttributes: new AttributeList(overrides.request_attributes ?? config.request_attributes ?? []),
    responseAttributes: new AttributeList(overrides.response_attributes ?? config.response_attributes ?? []),
    overrides: overridesOf(config, mode),
    isObserving: config.observability_mode ?? false,
    closeAfterMs: durationMs(config.deferred_close_timeout, CLOSE_AFTER_MS),
    sendsEarly: config.send_body_without_waiting_for_header_response ?? false,
    failsOpen: overrides.failure_mode_allow ?? config.failure_mode_allow ?? false,
    errorStatus: errorStatus(config.status_on_error, 500),
    messageTimeoutMs: durationMs(config.message_timeout, MESSAGE_TIMEOUT_MS),
    maxTimeoutMs: durationMs(config.max_message_timeout, 0),
    routeAction: routeActionOf(config),
    refusesImmediate: config.disable_immediate_response ?? false,
    maxQueuedBytes: Math.min(chain.bufferLimit, MAX_QUEUED_BYTES),
    bufferLimit: chain.bufferLimit,
    stateKey: chain.filterName,
    cluster,
    isHttp,
    stats,
    memory,
    timers,
    nowMs: () => clock.monotonicMs,
    start,
    change: (block, change, how) => applyMutation(block, change, { ...how, rules: mutation }),
  };
}

function processorOf(
  config: ExternalProcessor,
  overrides: ExtProcOverrides,
  { calls }: WorkerContext,
): Pick<Rules, 'cluster' | 'isHttp' | 'start'> {
  const grpc = overrides.grpc_service ?? config.grpc_service;
  if (grpc === undefined) {
    const http = config.http_service!.http_service!;
    const service = new HttpService(http, calls);
    return {
      cluster: http.http_uri!.cluster!,
      isHttp: true,
      start: (_info, record, events) => new HttpProcessor(service, record, events),
    };
  }
  const service = serviceOf(grpc, overrides.grpc_initial_metadata ?? []);
  const channel = new GrpcChannel(service, calls);
  return {
    cluster: service.envoy_grpc!.cluster_name!,
    isHttp: false,
    start: (info, record, events) => startGrpcStream(channel, info, record, events),
  };
}

/** Adds metadata of routes, which replaces that of the same name. */
function serviceOf(service: GrpcService, added: readonly HeaderValue[]): GrpcService {
  if (added.length === 0) return service;
  const names = new Set(added.map(({ key }) => key));
  const kept = (service.initial_metadata ?? []).filter(({ key }) => !names.has(key));
  return { ...service, initial_metadata: [...kept, ...added] };
}

function mergedMetadata(own: MetadataOptions = {}, route: MetadataOptions = {}): MetadataOptions {
  return { ...own, ...route };
}

/** As in Envoy, the modes are fixed if a body does not wait for the answer about its head. */
function overridesOf(config: ExternalProcessor, mode: Mode): readonly Mode[] | undefined {
  const isFixed = config.send_body_without_waiting_for_header_response === true || hasConversation(mode);
  return config.allow_mode_override === true && !isFixed
    ? (config.allowed_override_modes ?? []).map(compileMode)
    : undefined;
}

function routeActionOf({
  disable_clear_route_cache: isDisabled,
  route_cache_action: action,
}: ExternalProcessor): RouteAction {
  if (isDisabled === true || action === 'RETAIN') return RouteAction.Never;
  return action === 'CLEAR' ? RouteAction.Always : RouteAction.AsAnswered;
}
