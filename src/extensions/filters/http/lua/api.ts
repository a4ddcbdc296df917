// The classes of objects that scripts get, in the order of LuaClass, and what each VM defines in Lua.

import type { LuaMethod } from '../../../sdk.js';
import { HANDLE } from './handle.js';
import { BODY, BODY_CHUNKS } from './objects/body.js';
import { HEADER_ITERATOR, HEADERS } from './objects/headers.js';
import { LOGS } from './objects/logs.js';
import { CONNECTION_METADATA, DYNAMIC_METADATA, METADATA, METADATA_ITERATOR } from './objects/metadata.js';
import { PLACE } from './objects/place.js';
import { PUBLIC_KEY } from './objects/public-key.js';
import { PARSED_NAME, SSL_CONNECTION } from './objects/ssl.js';
import { COUNTER, GAUGE, HISTOGRAM, STATS } from './objects/stats-objects.js';
import { CONNECTION, CONNECTION_STREAM_INFO, FILTER_STATE, STREAM_INFO } from './objects/stream-info.js';

export const API: readonly (readonly LuaMethod[])[] = [
  HANDLE,
  HEADERS,
  HEADER_ITERATOR,
  BODY,
  BODY_CHUNKS,
  METADATA,
  METADATA_ITERATOR,
  DYNAMIC_METADATA,
  CONNECTION_METADATA,
  STREAM_INFO,
  CONNECTION_STREAM_INFO,
  CONNECTION,
  SSL_CONNECTION,
  PARSED_NAME,
  FILTER_STATE,
  PUBLIC_KEY,
  PLACE,
  STATS,
  COUNTER,
  GAUGE,
  HISTOGRAM,
].map((methods) => [...methods, ...LOGS]);

export const PRELUDE = 'EnvoyTimestampResolution = { MILLISECOND = 0, MICROSECOND = 1 }';
