// How many addresses of a name are one host's: a name server must not make connects to a host that is down take long.

export const MAX_ADDRESSES = 32;
