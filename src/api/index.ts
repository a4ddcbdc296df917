// The module 'baton', which extensions in TypeScript import.

export * from './access-logger.js';
export type * from './context.js';
export * from './http-filter.js';
export * from './network-filter.js';
