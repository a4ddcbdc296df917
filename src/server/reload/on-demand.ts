// What only a reload needs, as one module that is loaded after the start: when it is asked for, descriptors may be short, and what
// Node could not load once it does not load again.

export { carryOut } from './carry-out.js';
export { changesOf } from './changes.js';
export { compareConfigurations } from './comparison/comparison.js';
export { namesStillInUse } from './names-in-use.js';
export { sourcesStillInUse } from './sources-in-use.js';
