// A configuration of the transcoder, compiled: descriptors, methods and options.

import { createHash } from 'node:crypto';
import type { GrpcJsonTranscoder } from '../../../../config/generated/api.js';
import { DescriptorError, readDescriptorSet } from '../../../protobuf/descriptor-set.js';
import type { TypeRegistry } from '../../../protobuf/types.js';
import { BatonError, messageOf, readRegularFile } from '../../../sdk.js';
import type { EncodingRules } from './message-encoder.js';
import type { PrintOptions } from './message-printer.js';
import { type BoundMethod, bindMethods, RuleError } from './method-table.js';
import type { PathTree } from './path-tree.js';
import { statusMessage } from './status-message.js';
import type { Kept } from './unescape.js';

/** How the messages of a streaming response are separated. */
export const enum StreamForm {
  /** Elements of an array. */
  Array = 0,
  Lines = 1,
  /** Server-sent events. */
  Events = 2,
}

export interface TranscoderRules {
  readonly registry: TypeRegistry;
  readonly methods: PathTree<BoundMethod>;
  readonly encoding: EncodingRules;
  readonly print: PrintOptions;
  readonly streamForm: StreamForm;
  /** The route that the request had as it came stays. */
  readonly keepsRoute: boolean;
  readonly ignoredParameters: ReadonlySet<string>;
  readonly ignoresUnknownParameters: boolean;
  readonly capturesUnknownParameters: boolean;
  readonly refusesUnknownParameters: boolean;
  readonly refusesUnknownMethods: boolean;
  readonly convertsStatus: boolean;
  /** What stays encoded in the value of a path variable with several segments. */
  readonly kept: Kept;
  readonly decodesPlus: boolean;
  /** Undefined: the buffer limit of the stream. */
  readonly maxRequestBytes: number | undefined;
  readonly maxResponseBytes: number | undefined;
  readonly status: ReturnType<typeof statusMessage>;
}

const MAX_FILE_BYTES = 64 * 1024 * 1024;

/**
 * Returns undefined for a configuration without services, which switches the filter off.
 * @throws BatonError; its `where` is the field
 */
export function compileRules(config: GrpcJsonTranscoder): TranscoderRules | undefined {
  const { services = [], print_options: print = {}, request_validation_options: validation = {} } = config;
  if (services.length === 0) return undefined;
  const registry = registryOf(config);
  return {
    registry,
    methods: methodsOf(config, registry, services),
    encoding: {
      ignoresEnumCase: config.case_insensitive_enum_parsing ?? false,
      refusesCollisions: validation.reject_binding_body_field_collisions ?? false,
      messages: registry.messages,
    },
    print: {
      addsSpace: print.add_whitespace ?? false,
      printsDefaults: print.always_print_primitive_fields ?? false,
      printsEnumNumbers: print.always_print_enums_as_ints ?? false,
      keepsNames: print.preserve_proto_field_names ?? false,
    },
    streamForm: streamFormOf(print),
    keepsRoute: config.match_incoming_request_route ?? false,
    ignoredParameters: new Set(config.ignored_query_parameters),
    ignoresUnknownParameters: config.ignore_unknown_query_parameters ?? false,
    capturesUnknownParameters: config.capture_unknown_query_parameters ?? false,
    refusesUnknownParameters: validation.reject_unknown_query_parameters ?? false,
    refusesUnknownMethods: validation.reject_unknown_method ?? false,
    convertsStatus: config.convert_grpc_status ?? false,
    kept: keptOf(config.url_unescape_spec),
    decodesPlus: config.query_param_unescape_plus ?? false,
    maxRequestBytes: config.max_request_body_size,
    maxResponseBytes: config.max_response_body_size,
    status: statusMessage(registry),
  };
}

function streamFormOf(print: NonNullable<GrpcJsonTranscoder['print_options']>): StreamForm {
  if (print.stream_sse_style_delimited) return StreamForm.Events;
  return print.stream_newline_delimited ? StreamForm.Lines : StreamForm.Array;
}

function keptOf(spec: GrpcJsonTranscoder['url_unescape_spec']): Kept {
  if (spec === 'ALL_CHARACTERS') return 'none';
  return spec === 'ALL_CHARACTERS_EXCEPT_SLASH' ? 'slash' : 'reserved';
}

function methodsOf(
  config: GrpcJsonTranscoder,
  registry: TypeRegistry,
  services: readonly string[],
): PathTree<BoundMethod> {
  try {
    const { auto_mapping: mapsAll = false, match_unregistered_custom_verb: takesAllVerbs = false } = config;
    return bindMethods(registry, services, mapsAll, takesAllVerbs);
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    throw new BatonError('CONFIG_INVALID', error.message, { where: 'services', cause: error });
  }
}

/** Registries in use, by their bytes: routes often share them with the filter. */
const REGISTRIES = new Map<string, WeakRef<TypeRegistry>>();

function registryOf({ proto_descriptor: file, proto_descriptor_bin: bytes }: GrpcJsonTranscoder): TypeRegistry {
  const where = bytes === undefined ? 'proto_descriptor' : 'proto_descriptor_bin';
  const content = bytes === undefined ? readFile(file ?? '') : Buffer.from(bytes, 'base64');
  const key = createHash('sha256').update(content).digest('base64');
  const known = REGISTRIES.get(key)?.deref();
  if (known !== undefined) return known;
  try {
    const registry = readDescriptorSet(content);
    for (const [name, reference] of REGISTRIES) if (reference.deref() === undefined) REGISTRIES.delete(name);
    REGISTRIES.set(key, new WeakRef(registry));
    return registry;
  } catch (error) {
    if (!(error instanceof DescriptorError)) throw error;
    throw new BatonError('CONFIG_INVALID', `the descriptor set cannot be used: ${error.message}`, {
      where,
      cause: error,
    });
  }
}

function readFile(file: string): Buffer {
  try {
    return readRegularFile(file, MAX_FILE_BYTES);
  } catch (error) {
    const message = `unable to read file: ${messageOf(error)}`;
    throw new BatonError('CONFIG_UNREADABLE', message, { where: 'proto_descriptor', cause: error });
  }
}
