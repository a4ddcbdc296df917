// What end-to-end tests import.

export * from './baton.js';
export * from './black-hole.js';
export * from './bootstrap.js';
export * from './browser.js';
export * from './environment.js';
export * from './epochs.js';
export * from './http-client.js';
export * from './keepalive.js';
export * from './load.js';
export * from './log-lines.js';
export * from './peers.js';
export * from './raw-connection.js';
export * from './upstream.js';
export * from './wait-for.js';
