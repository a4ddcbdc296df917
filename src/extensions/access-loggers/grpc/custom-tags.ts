// Custom tags of log entries (envoy.type.tracing.v3.CustomTag).

import type { CustomTag } from '../../../config/generated/api.js';
import { writeMapText } from '../../messages/wire.js';
import {
  BatonError,
  compileFormat,
  type Format,
  type HeaderNeeds,
  headerKey,
  type ProtobufWriter,
  type StreamInfo,
  withinPlace,
} from '../../sdk.js';

interface Tag {
  readonly name: string;
  /** Returns the text with one character per byte; '': the tag is left out. */
  value(info: StreamInfo): string;
}

/** The compiled tags of a logger. */
export class CustomTags {
  readonly #tags: readonly Tag[];

  constructor(tags: readonly Tag[]) {
    this.#tags = tags;
  }

  write(to: ProtobufWriter, field: number, info: StreamInfo): void {
    for (const tag of this.#tags) {
      const value = tag.value(info);
      if (value !== '') writeMapText(to, field, tag.name, value);
    }
  }
}

/** Compiles tags, and adds the headers that they read to `needs`. Throws a BatonError with its place for an invalid one. */
export function compileCustomTags(
  tags: readonly CustomTag[] | undefined,
  needs: HeaderNeeds,
  where: string,
): CustomTags {
  const compiled = (tags ?? []).map((tag, index) => ({
    name: tag.tag!,
    value: compileTag(tag, needs, `${where}[${index}]`),
  }));
  return new CustomTags(compiled);
}

function compileTag(tag: CustomTag, needs: HeaderNeeds, where: string): Tag['value'] {
  const { environment, literal, metadata, request_header: header, value } = tag;
  if (literal !== undefined) return constant(literal.value ?? '');
  if (environment !== undefined) {
    const found = process.env[environment.name!];
    return constant(found === undefined || found === '' ? (environment.default_value ?? '') : found);
  }
  if (header !== undefined) {
    const key = headerKey(header.name!);
    const fallback = bytesOf(header.default_value ?? '');
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
  if (path.some((part) => /[:()%]/.test(part))) {
    const text = "names with ':', '%' or parentheses are not implemented";
    throw new BatonError('CONFIG_INVALID', text, { where: `${where}.metadata.metadata_key` });
  }
  const format = compileFormat(`%METADATA(${KINDS[type]}:${path.join(':')})%`, { omitEmptyValues: true });
  const fallback = bytesOf(default_value);
  return (info: StreamInfo) => {
    const text = format.text(info);
    return text === '' ? fallback : text;
  };
}

function constant(text: string): Tag['value'] {
  const bytes = bytesOf(text);
  return () => bytes;
}

/** Returns text with one character per byte. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function addNeeds({ needs }: Format, to: HeaderNeeds): void {
  for (const part of ['request', 'response', 'trailers'] as const) for (const name of needs[part]) to[part].add(name);
  if (needs.wireBytes === true) to.wireBytes = true;
}
