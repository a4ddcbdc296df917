// What only a reload needs, as one module: reload-parts.ts loads it.

export { carryOut } from './carry-out.js';
export { changesOf } from './changes.js';
export { compareConfigurations } from './comparison/comparison.js';
export { namesStillInUse } from './names-in-use.js';
export { sourcesStillInUse } from './sources-in-use.js';
