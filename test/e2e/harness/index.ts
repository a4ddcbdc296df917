// Everything an end-to-end test imports.

export * from './baton.js';
export * from './bootstrap.js';
export * from './environment.js';
export * from './http-client.js';
export * from './raw-connection.js';
export * from './upstream.js';
export * from './wait-for.js';
