// Bootstraps in protobuf's own forms: binary and text. What is wrong with a value has a field path, and no line.

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

/** Reads a message and gives it in proto JSON form, to be checked as any other text. */
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

/** What cannot be read may be a piece of a secret. */
function withoutText(message: string): string {
  return message.replace(/^(unexpected token|illegal \w+(?: \w+)?) '.*'(?= \(line)/s, '$1');
}

/** Loaded here only: most configurations are YAML or JSON, and need no protobufjs. */
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
