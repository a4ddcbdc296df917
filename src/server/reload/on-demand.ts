// The modules that only a reload needs, in one module for reload-parts.ts.

export { carryOut } from './carry-out.js';
export { changesOf } from './changes.js';
export { compareConfigurations } from './comparison/comparison.js';
export { namesStillInUse } from './names-in-use.js';
export { sourcesStillInUse } from './sources-in-use.js';
