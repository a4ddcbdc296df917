// Tracing fields of a route (route.v3.Route.tracing and decorator), compiled.

import { compileFormat, type Format, noHeaderNeeds } from '../../access-log/formats/format.js';
import { withinPlace } from '../../access-log/operators/format-error.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import { BatonError, buildAll } from '../../common/errors/errors.js';
import { byteText } from '../../common/text/byte-text.js';
import type { Decorator, Tracing } from '../../config/generated/api.js';
import type { Runtime } from '../../runtime/runtime.js';
import { addNeeds, type CompiledTag, compileCustomTags } from './custom-tags.js';
import { compileFractions, type SamplingFractions } from './sampling.js';

/** Formats of the names of spans; undefined: none is configured. */
export interface SpanNameFormats {
  readonly request: Format | undefined;
  readonly tries: Format | undefined;
}

/** Decorator: a name for the spans of a route. */
export interface RouteDecorator {
  /** One character per byte. */
  readonly operation: string;
  /** The name is sent to the next hop, or back to the previous one. */
  readonly isPropagated: boolean;
}

export interface RouteTracing {
  readonly decorator: RouteDecorator | undefined;
  /** Undefined: the route has no `tracing`. */
  readonly fractions: SamplingFractions | undefined;
  readonly tags: readonly CompiledTag[];
  readonly names: SpanNameFormats;
}

/** Returns undefined for a route with neither field. Throws a BatonError, or Mistakes, for invalid ones; `where`: the route's place. */
export function compileRouteTracing(
  { decorator, tracing }: { readonly decorator?: Decorator; readonly tracing?: Tracing },
  where: string,
  runtime: Runtime,
): RouteTracing | undefined {
  if (decorator === undefined && tracing === undefined) return undefined;
  const at = `${where}.tracing`;
  return {
    decorator: decorator && compileDecorator(decorator, `${where}.decorator`),
    fractions: tracing && compileFractions(tracing, runtime),
    tags: compileCustomTags(tracing?.custom_tags, noHeaderNeeds(), `${at}.custom_tags`),
    names: compileNames(tracing ?? {}, noHeaderNeeds(), at),
  };
}

function compileDecorator({ operation = '', propagate = true }: Decorator, where: string): RouteDecorator {
  // It becomes the value of a header.
  if (/[\0\r\n]/.test(operation))
    throw new BatonError('CONFIG_INVALID', 'must not contain a line break or NUL', { where: `${where}.operation` });
  return { operation: byteText(operation), isPropagated: propagate };
}

/** Compiles `operation` and `upstream_operation`, and adds what they read to `needs`. */
export function compileNames(
  { operation, upstream_operation: tries }: { readonly operation?: string; readonly upstream_operation?: string },
  needs: HeaderNeeds,
  where: string,
): SpanNameFormats {
  return buildAll({
    request: () => nameFormat(operation, needs, `${where}.operation`),
    tries: () => nameFormat(tries, needs, `${where}.upstream_operation`),
  });
}

function nameFormat(text: string | undefined, needs: HeaderNeeds, where: string): Format | undefined {
  if (text === undefined || text === '') return undefined;
  const format = withinPlace(where, () => compileFormat(text, { omitEmptyValues: true }));
  addNeeds(format, needs);
  return format;
}
