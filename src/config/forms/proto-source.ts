// Reads bootstraps in protobuf's binary and text forms. Problems with values have a field path but no line.

import { createRequire } from 'node:module';
import type protobufjs from 'protobufjs';
import type * as ProtoJson from 'protobufjs/ext/protojson.js';
import type * as TextFormat from 'protobufjs/ext/textformat.js';
import { messageOf } from '../../common/errors/errors.js';
import { loadAllMessages } from '../schema/messages.js';
import { formatPath } from '../text/path.js';
import { problemOf } from '../text/problem.js';
import { type SourceResult, syntaxProblems } from '../text/source.js';
import { jsonOf, ProtoMistake, readBinary } from './binary-proto.js';
import { textProtoMistakes } from './text-proto-mistakes.js';

/** Reads a message and converts it to proto JSON, which is checked like any other text. */
export function readProto(
  name: string,
  form: 'binary' | 'text',
  content: Buffer | string,
  message: string,
): SourceResult {
  const { protobuf, protojson, textformat } = libraries();
  const root = loadAllMessages();
  try {
    const source = { name, size: content.length, locate: () => undefined };
    if (form === 'binary') {
      const library = { Reader: protobuf.Reader, toJson: protojson.toJson };
      return { source: { ...source, ...readBinary(library, root, message, content as Buffer) }, problems: [] };
    }
    const type = root.lookupType(message);
    const read = textformat.fromText(type, content as string);
    return { source: { ...source, value: jsonOf(protojson, type, read) }, problems: [] };
  } catch (error) {
    if (form === 'text' && !(error instanceof ProtoMistake)) {
      const text = content as string;
      const { mistakes, further } = textProtoMistakes(root.lookupType(message), text);
      if (mistakes.length > 0) return { problems: syntaxProblems(name, text, mistakes), furtherProblems: further };
    }
    const what = form === 'binary' ? 'a binary protobuf' : 'a text protobuf';
    const problem = `unable to read the file as ${what} of ${message}: ${withoutText(messageOf(error))}`;
    const path = error instanceof ProtoMistake ? formatPath(error.path) : '';
    return { problems: [problemOf(name, problem, path)] };
  }
}

/** Removes the unreadable text from an error, since it may be part of a secret. */
function withoutText(message: string): string {
  return message.replace(/^(unexpected token|illegal \w+(?: \w+)?) '.*'(?= \(line)/s, '$1');
}

/** Loads protobufjs on demand: most configurations are YAML or JSON. */
function libraries(): {
  protobuf: typeof protobufjs;
  protojson: typeof ProtoJson;
  textformat: typeof TextFormat;
} {
  const require = createRequire(import.meta.url);
  return {
    protobuf: require('protobufjs/light.js') as typeof protobufjs,
    protojson: require('protobufjs/ext/protojson.js') as typeof ProtoJson,
    textformat: require('protobufjs/ext/textformat.js') as typeof TextFormat,
  };
}
