// The module 'baton/testing'. src/api/testing.ts has its types.

export { startBaton } from './start-baton.js';
export { testFilter } from './test-filter.js';
