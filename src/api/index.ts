// The module 'baton', which extensions in TypeScript import.

export type * from './context.js';
export * from './http-filter.js';
