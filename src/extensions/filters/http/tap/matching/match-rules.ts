// Decides which requests are tapped: a compiled MatchPredicate, evaluated while request and response pass.
//
// A condition is unknown until its part of the message has arrived or can no longer arrive. So streamed and buffered traces cover
// the same requests.

import type {
  MatcherHttpGenericBodyMatch,
  MatcherHttpHeadersMatch,
  MatcherMatchPredicate,
  TapConfig,
} from '../../../../../config/generated/api.js';
import { BatonError, compileHeaderRules, type HeaderBlock, type HeaderRule, matchesAll } from '../../../../sdk.js';
import { BodySearch } from './body-search.js';

export const enum Truth {
  False = 0,
  True = 1,
  Unknown = 2,
}

/** Parts of a request and its response; the order has no meaning. */
export const enum Part {
  RequestHeaders = 0,
  RequestBody = 1,
  RequestTrailers = 2,
  ResponseHeaders = 3,
  ResponseBody = 4,
  ResponseTrailers = 5,
}

/** The compiled predicate of a TapConfig. */
export class MatchRules {
  readonly #root: Node;
  readonly #leaves: readonly Leaf[];

  /** Throws a BatonError, with a path within the configuration, if the predicate is missing or invalid. */
  constructor({ match, match_config }: TapConfig) {
    const predicate = match ?? match_config;
    if (predicate === undefined) throw new BatonError('CONFIG_INVALID', 'neither match nor match_config is set');
    const leaves: Leaf[] = [];
    this.#root = compile(predicate, match === undefined ? 'match_config' : 'match', leaves);
    this.#leaves = leaves;
  }

  /** Creates the state for one request. */
  begin(): MatchState {
    return new MatchState(this.#root, this.#leaves);
  }
}

/** The evaluation of one request. */
export class MatchState {
  readonly #root: Node;
  readonly #leaves: readonly Leaf[];
  readonly #truths: Uint8Array;
  readonly #searches: (BodySearch | undefined)[];

  constructor(root: Node, leaves: readonly Leaf[]) {
    this.#root = root;
    this.#leaves = leaves;
    this.#truths = new Uint8Array(leaves.length).fill(Truth.Unknown);
    this.#searches = leaves.map(({ patterns, limit }) => patterns && new BodySearch(patterns, limit));
  }

  get verdict(): Truth {
    return evaluate(this.#root, this.#truths);
  }

  /** Called for headers or trailers. */
  onHeaders(part: Part, headers: HeaderBlock): void {
    this.#leaves.forEach((leaf, index) => {
      if (leaf.part === part) this.#truths[index] = matchesAll(leaf.headers, headers) ? Truth.True : Truth.False;
    });
  }

  /** Returns whether further bytes of a body can change the result. */
  needsBody(part: Part): boolean {
    return this.#leaves.some((leaf, index) => leaf.part === part && this.#truths[index] === Truth.Unknown);
  }

  onBody(part: Part, bytes: Uint8Array): void {
    this.#leaves.forEach((leaf, index) => {
      if (leaf.part !== part || this.#truths[index] !== Truth.Unknown) return;
      const search = this.#searches[index]!;
      search.add(bytes);
      if (search.isDecided) this.#truths[index] = search.isFound ? Truth.True : Truth.False;
    });
  }

  /** Called when a part is complete: its undecided conditions become false. */
  onEnd(part: Part): void {
    this.#leaves.forEach((leaf, index) => {
      if (leaf.part === part && this.#truths[index] === Truth.Unknown) this.#truths[index] = Truth.False;
    });
  }
}

type Node =
  | { readonly kind: 'leaf'; readonly index: number }
  | { readonly kind: 'any' }
  | { readonly kind: 'not'; readonly rule: Node }
  | { readonly kind: 'and' | 'or'; readonly rules: readonly Node[] };

/** A condition on one part of the messages. */
interface Leaf {
  readonly part: Part;
  /** For headers and trailers. */
  readonly headers: readonly HeaderRule[];
  /** For a body. */
  readonly patterns: readonly Uint8Array[] | undefined;
  readonly limit: number;
}

/** Evaluates three-valued logic: the result is unknown unless the known values determine it. */
function evaluate(node: Node, truths: Uint8Array): Truth {
  switch (node.kind) {
    case 'any':
      return Truth.True;
    case 'leaf':
      return truths[node.index]!;
    case 'not': {
      const truth = evaluate(node.rule, truths);
      return truth === Truth.Unknown ? truth : truth === Truth.True ? Truth.False : Truth.True;
    }
    default: {
      const decisive = node.kind === 'and' ? Truth.False : Truth.True;
      let result: Truth = decisive === Truth.False ? Truth.True : Truth.False;
      for (const rule of node.rules) {
        const truth = evaluate(rule, truths);
        if (truth === decisive) return decisive;
        if (truth === Truth.Unknown) result = Truth.Unknown;
      }
      return result;
    }
  }
}

function compile(predicate: MatcherMatchPredicate, where: string, leaves: Leaf[]): Node {
  const list = (kind: 'and' | 'or', field: 'and_match' | 'or_match'): Node => {
    const rules = predicate[field]!.rules ?? [];
    return { kind, rules: rules.map((rule, index) => compile(rule, `${where}.${field}.rules[${index}]`, leaves)) };
  };
  if (predicate.or_match !== undefined) return list('or', 'or_match');
  if (predicate.and_match !== undefined) return list('and', 'and_match');
  if (predicate.not_match !== undefined) {
    return { kind: 'not', rule: compile(predicate.not_match, `${where}.not_match`, leaves) };
  }
  if (predicate.any_match !== undefined) return { kind: 'any' };
  leaves.push(compileLeaf(predicate, where));
  return { kind: 'leaf', index: leaves.length - 1 };
}

/** The schema guarantees that one member is set. */
function compileLeaf(predicate: MatcherMatchPredicate, where: string): Leaf {
  const { http_request_headers_match: requestHeaders, http_request_trailers_match: requestTrailers } = predicate;
  const { http_response_headers_match: responseHeaders, http_response_trailers_match: responseTrailers } = predicate;
  const { http_request_generic_body_match: requestBody, http_response_generic_body_match: responseBody } = predicate;
  const ofHeaders = (part: Part, match: MatcherHttpHeadersMatch, field: keyof MatcherMatchPredicate): Leaf => {
    const headers = compileHeaderRules(match.headers, `${where}.${field}.headers`) ?? [];
    return { part, headers, patterns: undefined, limit: 0 };
  };
  if (requestHeaders) return ofHeaders(Part.RequestHeaders, requestHeaders, 'http_request_headers_match');
  if (requestTrailers) return ofHeaders(Part.RequestTrailers, requestTrailers, 'http_request_trailers_match');
  if (responseHeaders) return ofHeaders(Part.ResponseHeaders, responseHeaders, 'http_response_headers_match');
  if (responseTrailers) return ofHeaders(Part.ResponseTrailers, responseTrailers, 'http_response_trailers_match');
  const part = requestBody ? Part.RequestBody : Part.ResponseBody;
  const body = (requestBody ?? responseBody)!;
  return { part, headers: [], patterns: patternsOf(body), limit: body.bytes_limit ?? 0 };
}

function patternsOf({ patterns = [] }: MatcherHttpGenericBodyMatch): Uint8Array[] {
  return patterns.map(({ string_match: text, binary_match: bytes }) =>
    text === undefined ? Buffer.from(bytes ?? '', 'base64') : Buffer.from(text),
  );
}
