// Checks every import in src: a room may import only from floors below it, and no file may be part of an import cycle. Type
// imports count, because readers have to follow them too. Extensions access lower rooms only through a façade.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');

/** The rooms of each floor, from the ground up. A room is a file or a folder of src. */
const FLOORS = [
  ['io', 'common', 'api'],
  ['config'],
  ['stats', 'log', 'cel'],
  ['runtime', 'access-log', 'tls', 'scripts'],
  ['listener', 'http', 'upstream', 'grpc'],
  ['extensions'],
  ['admin', 'restart', 'restarter', 'testing', 'xds'],
  ['server', 'worker'],
  ['main.ts', 'cli'],
];

/** Exceptions for rooms on the same floor: the importer, and the rooms that it may import from. */
const NEIGHBOURS = {
  io: ['common'],
  http: ['listener'],
  // Upstream connections use the codecs, which are in http.
  upstream: ['http'],
  grpc: ['http', 'upstream'],
  server: ['worker'],
  'main.ts': ['cli'],
};

/** The one file that loads the native transport. */
const SHIM_FACADES = ['src/io/shim.ts', 'src/io/lua-vm.ts'];

/** The only files outside its folder that an extension may import. What it needs beyond that is added to the first one. */
const FOR_EXTENSIONS = [
  'src/api/index.ts',
  'src/config/generated/api.ts',
  'src/extensions/grpc-sdk.ts',
  'src/extensions/sdk.ts',
];
/** Extensions that are part of the data plane and use its internals. */
const INSIDERS = [
  'filters/http/router',
  'filters/network/http-connection-manager',
  'filters/network/tcp-proxy',
  'transport-sockets/tls',
];

const floorOf = new Map(FLOORS.flatMap((rooms, index) => rooms.map((room) => [room, index + 1])));
const files = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => relative(root, join(entry.parentPath ?? entry.path, entry.name)))
  .sort();
const known = new Set(files);
const complaints = [];
/** The imports in src of each file. */
const graph = new Map();

for (const file of files) {
  const source = readFileSync(join(root, file), 'utf8');
  const targets = new Set();
  for (const { specifier, line } of importsOf(source)) {
    if (!specifier.startsWith('.')) continue;
    const target = relative(root, resolve(root, dirname(file), specifier)).replace(/\.js$/, '.ts');
    const complaint = complaintAbout(file, target);
    if (complaint !== undefined) complaints.push(`${file}:${line}: ${complaint}`);
    if (known.has(target)) targets.add(target);
  }
  graph.set(file, [...targets]);
  if (!SHIM_FACADES.includes(file) && /native-shim[\w./-]*\.node|['"`]native-shim\//.test(source)) {
    complaints.push(`${file}: only ${SHIM_FACADES.join(' and ')} load native code`);
  }
}
for (const cycle of cycles()) complaints.push(`import cycle: ${cycle.join(' → ')}`);

for (const complaint of complaints) console.error(complaint);
const imports = [...graph.values()].reduce((sum, targets) => sum + targets.length, 0);
console.log(`floors: ${files.length} files, ${imports} imports, ${complaints.length} complaints`);
process.exitCode = complaints.length === 0 ? 0 : 1;

/** Returns every module in a static import, a re-export, an import() or an import type. */
function importsOf(source) {
  const clause = String.raw`(?:type\s+)?(?:[\w$]+\s*,?\s*)?(?:\{[^}]*\}|\*(?:\s*as\s+[\w$]+)?)?\s*from\s*`;
  const pattern = new RegExp(
    String.raw`^[ \t]*(?:import|export)\s+${clause}(['"])(?<from>[^'"\n]+)\1` +
      String.raw`|^[ \t]*import\s*(['"])(?<bare>[^'"\n]+)\3` +
      String.raw`|\bimport\s*\(\s*(['"])(?<call>[^'"\n]+)\5\s*\)`,
    'gm',
  );
  const found = [];
  for (const match of source.matchAll(pattern)) {
    const { from, bare, call } = match.groups;
    const lineStart = source.lastIndexOf('\n', match.index) + 1;
    // import() is searched anywhere in a line, so comments must be skipped.
    if (call !== undefined && /^\s*(\/\/|\*|\/\*)/.test(source.slice(lineStart, match.index + 1))) continue;
    found.push({ specifier: from ?? bare ?? call, line: source.slice(0, match.index).split('\n').length });
  }
  return found;
}

/** Returns why `file` must not import `target`, or undefined. */
function complaintAbout(file, target) {
  if (!target.startsWith('src/')) {
    return target.endsWith('.json') ? undefined : `imports ${target}, which is outside src`;
  }
  if (!known.has(target)) return `imports ${target}, which does not exist`;
  const room = roomOf(file);
  const targetRoom = roomOf(target);
  if (isPlainExtension(file) && !FOR_EXTENSIONS.includes(target) && !isInExtensionFolder(target)) {
    return `an extension imports from src/extensions/sdk.ts, not from ${target}: what is missing there is to be added`;
  }
  if (room === targetRoom) return undefined;
  const floor = floorOf.get(room);
  const targetFloor = floorOf.get(targetRoom);
  if (floor === undefined) return `src/${room} is on no floor: add it to scripts/check-floors.mjs`;
  if (targetFloor === undefined) return `src/${targetRoom} is on no floor: add it to scripts/check-floors.mjs`;
  if (targetFloor < floor || NEIGHBOURS[room]?.includes(targetRoom)) return undefined;
  return `${room} (floor ${floor}) may not import ${target} (floor ${targetFloor})`;
}

function isPlainExtension(file) {
  return isInExtensionFolder(file) && !INSIDERS.some((folder) => file.startsWith(`src/extensions/${folder}/`));
}

/** Returns the room of a file: its folder in src, or the file itself. */
function isInExtensionFolder(file) {
  return roomOf(file) === 'extensions' && file.split('/').length > 3;
}

function roomOf(file) {
  return file.split('/')[1];
}

/** Returns one cycle for each group of files that can reach each other, as a path from a file back to itself. */
function cycles() {
  const found = [];
  const settled = new Set();
  for (const start of graph.keys()) {
    const path = [];
    const onPath = new Set();
    const visit = (file) => {
      if (onPath.has(file)) {
        found.push([...path.slice(path.indexOf(file)), file]);
        return;
      }
      if (settled.has(file)) return;
      path.push(file);
      onPath.add(file);
      for (const target of graph.get(file)) visit(target);
      path.pop();
      onPath.delete(file);
      settled.add(file);
    };
    visit(start);
  }
  return found;
}
