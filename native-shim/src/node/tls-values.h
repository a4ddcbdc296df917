// JavaScript values of TLS.
#pragma once

#include <node_api.h>

#include <string>

#include "tls/session.h"

namespace baton {

// Reads a string or a Uint8Array; absent: empty. Returns false after throwing.
bool readText(napi_env env, napi_value value, const char* name, std::string& to);

// Bytes that are not UTF-8 are replaced.
napi_value makeText(napi_env env, const std::string& text);
// A Uint8Array.
napi_value makeRawText(napi_env env, const std::string& bytes);
napi_value makeDouble(napi_env env, double value);
// TlsState of src/io/shim.ts.
napi_value makeTlsState(napi_env env, const TlsSession& session);
// The certificates of the peer in DER form, its own first.
napi_value makePeerCertificates(napi_env env, const TlsSession& session);
// The certificate in DER form that has issued the peer's, in the verified chain; undefined if there is none.
napi_value makePeerIssuer(napi_env env, const TlsSession& session);
// The own certificate in DER form; undefined if there is none.
napi_value makeOwnCertificate(napi_env env, const TlsSession& session);

}  // namespace baton
