// Custom tags of spans and log entries (envoy.type.tracing.v3.CustomTag), compiled.

import { compileFormat, Format, noHeaderNeeds } from '../../access-log/formats/format.js';
import { TextTemplate } from '../../access-log/formats/text-template.js';
import { withinPlace } from '../../access-log/operators/format-error.js';
import { metadataAt } from '../../access-log/operators/metadata-operator.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { BatonError, buildEach } from '../../common/errors/errors.js';
import { byteText } from '../../common/text/byte-text.js';
import { headerKey } from '../../common/text/header-names.js';
import type { CustomTag } from '../../config/generated/api.js';
import type { Span, TagValue } from './tracer.js';

export interface CompiledTag {
  readonly name: string;
  /** Returns the text with one character per byte; '': the tag is left out. */
  value(info: StreamInfo): string;
  readonly type: CustomTag['value_type'];
}

/** Compiles tags, and adds the headers that they read to `needs`. Throws a BatonError with its place for an invalid one. */
export function compileCustomTags(
  tags: readonly CustomTag[] | undefined,
  needs: HeaderNeeds,
  where: string,
): CompiledTag[] {
  return buildEach(tags ?? [], (tag, index) => ({
    name: tag.tag!,
    value: compileTag(tag, needs, `${where}[${index}]`),
    type: tag.value_type,
  }));
}

/** Returns `first` and those of `others` that it does not name. As in Envoy, the first of several with one name counts. */
export function mergeTags(first: readonly CompiledTag[], others: readonly CompiledTag[]): readonly CompiledTag[] {
  const byName = new Map<string, CompiledTag>();
  for (const tag of [...first, ...others]) if (!byName.has(tag.name)) byName.set(tag.name, tag);
  return [...byName.values()];
}

export function setCustomTags(span: Span, tags: readonly CompiledTag[], info: StreamInfo): void {
  for (const tag of tags) {
    const text = tag.value(info);
    if (text !== '') span.setTag(tag.name, typed(text, tag.type));
  }
}

/** Returns the value of the tag's type; a text that is not such a value stays a text. */
function typed(text: string, type: CustomTag['value_type']): TagValue {
  switch (type) {
    case 'INT':
      return isInt64(text) ? BigInt(text) : text;
    case 'DOUBLE': {
      const number = Number(text);
      return text.trim() !== '' && Number.isFinite(number) ? number : text;
    }
    case 'BOOL':
      return text === 'true' || text === 'false' ? text === 'true' : text;
    default:
      return text;
  }
}

function compileTag(tag: CustomTag, needs: HeaderNeeds, where: string): CompiledTag['value'] {
  const { environment, literal, metadata, request_header: header, value } = tag;
  if (literal !== undefined) return constant(literal.value ?? '');
  if (environment !== undefined) {
    const found = process.env[environment.name!];
    return constant(found === undefined || found === '' ? (environment.default_value ?? '') : found);
  }
  if (header !== undefined) {
    const key = headerKey(header.name!);
    const fallback = byteText(header.default_value ?? '');
    needs.request.add(key.name);
    return ({ requestHeaders }) => {
      const index = requestHeaders?.find(key) ?? -1;
      if (index < 0) return fallback;
      return requestHeaders!.memory.text(requestHeaders!.valueStart(index), requestHeaders!.valueEnd(index));
    };
  }
  if (metadata !== undefined) return metadataValue(metadata, where);
  const format = withinPlace(`${where}.value`, () => compileFormat(value ?? '', { omitEmptyValues: true }));
  addNeeds(format, needs);
  return (info) => format.text(info);
}

/** Types of METADATA by the kind of the tag. */
const KINDS = { request: 'DYNAMIC', route: 'ROUTE', cluster: 'CLUSTER', host: 'UPSTREAM_HOST' } as const;

function metadataValue({ kind, metadata_key, default_value = '' }: NonNullable<CustomTag['metadata']>, where: string) {
  const type = (Object.keys(KINDS) as (keyof typeof KINDS)[]).find((each) => kind?.[each] !== undefined);
  const path = [metadata_key?.key ?? '', ...(metadata_key?.path ?? []).map(({ key = '' }) => key)];
  if (type === undefined)
    throw new BatonError('CONFIG_INVALID', 'kind must be set', { where: `${where}.metadata.kind` });
  const format = new Format(noHeaderNeeds(), new TextTemplate([metadataAt(KINDS[type], path)], true));
  const fallback = byteText(default_value);
  return (info: StreamInfo) => {
    const text = format.text(info);
    return text === '' ? fallback : text;
  };
}

function constant(text: string): CompiledTag['value'] {
  const bytes = byteText(text);
  return () => bytes;
}

/** Adds what a format reads to `to`. */
export function addNeeds({ needs }: Pick<Format, 'needs'>, to: HeaderNeeds): void {
  for (const part of ['request', 'response', 'trailers'] as const) for (const name of needs[part]) to[part].add(name);
  if (needs.wireBytes === true) to.wireBytes = true;
}

function isInt64(text: string): boolean {
  if (!/^-?\d{1,19}$/.test(text)) return false;
  const number = BigInt(text);
  return BigInt.asIntN(64, number) === number;
}
