// Reads the .proto files: Envoy's API as @grpc/grpc-js-xds ships it, and the few that it lacks, from src/config/protos.

import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import protobuf from 'protobufjs';
import { ADDITIONS } from './additions.mjs';
import { mistakesInRules } from './own-rules.mjs';

/** Files of the package that import protos which it does not carry. A proto under src/config/protos brings one back. */
const LEFT_OUT = new Set([
  'envoy/config/trace/v3/opencensus.proto',
  'envoy/config/trace/v3/trace.proto',
  'envoy/extensions/access_loggers/open_telemetry/v3/logs_service.proto',
  'envoy/service/trace/v3/trace_service.proto',
]);

/** What an Any may hold that no message of Envoy's names. */
const NAMED_BY_NONE = ['xds/type/v3/typed_struct.proto', 'udpa/type/v1/typed_struct.proto'];

/**
 * All v3 messages of Envoy's API with field names as written, comments, and options parsed.
 * @param {string} root the checkout
 * @returns {protobuf.Root}
 * @throws {ProtoError} for a file that cannot be read
 */
export function loadProtos(root) {
  const deps = join(root, 'node_modules/@grpc/grpc-js-xds/deps');
  const own = join(root, 'src/config/protos');
  const folders = [
    own,
    ...['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map((name) => join(deps, name)),
    join(root, 'node_modules/protobufjs'),
  ];
  const protos = new protobuf.Root();
  protos.resolvePath = (origin, target) => {
    const folder = folders.find((candidate) => existsSync(join(candidate, target)));
    if (folder === undefined) throw new ProtoError(`${relative(root, origin)}: there is no '${target}' to import`);
    return join(folder, target);
  };
  const files = [...protoFiles(join(deps, 'envoy-api')), ...protoFiles(own)].filter(isWanted).concat(NAMED_BY_NONE);
  const options = { keepCase: true, alternateCommentMode: true, preferTrailingComment: false };
  try {
    protos.loadSync([...new Set(files)].sort(), options);
  } catch (error) {
    throw error instanceof ProtoError ? error : new ProtoError(`${placeOf(error, root)}${error.message}`);
  }
  addFields(protos);
  protos.resolveAll();
  const mistakes = mistakesInRules(protos, (file) => file.startsWith(own), root);
  if (mistakes.length > 0) throw new ProtoError(mistakes.join('\n'));
  return protos;
}

/** What is wrong with a file, for its author. */
export class ProtoError extends Error {}

/** protobufjs names the message in which a type is unknown, and of all else nothing but the line: it is in the file that was read last. */
function placeOf({ message }, root) {
  return message.startsWith('no such ') ? '' : `${relative(root, protobuf.parse.filename)}: `;
}

function isWanted(file) {
  return (/(^|\/)v3\//.test(file) || !file.startsWith('envoy/')) && !LEFT_OUT.has(file);
}

function protoFiles(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.proto'));
}

function addFields(protos) {
  for (const [message, fields] of Object.entries(ADDITIONS)) {
    const source = `syntax = "proto3"; message Added { ${fields} }`;
    const added = protobuf.parse(source, new protobuf.Root(), { keepCase: true }).root.lookupType('Added');
    const target = protos.lookupType(message);
    for (const { name, id, type, rule, partOf } of added.fieldsArray) {
      const field = new protobuf.Field(name, id, type, rule);
      (partOf ? target.oneofs[partOf.name] : target).add(field);
      field.resolve();
    }
  }
}
