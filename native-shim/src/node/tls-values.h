// Converts values of TLS from and to JavaScript.
#pragma once

#include <node_api.h>

#include <string>

#include "tls/session.h"

namespace baton {

// Reads a string or a Uint8Array into `to`, which stays as it is for undefined or null. Returns false after throwing.
bool readText(napi_env env, napi_value value, const char* name, std::string& to);

// Returns a string, in which bytes that are not UTF-8 are replaced.
napi_value makeText(napi_env env, const std::string& text);
// Returns a Uint8Array.
napi_value makeRawText(napi_env env, const std::string& bytes);
napi_value makeDouble(napi_env env, double value);
// Indexes of `numbers`, as TlsNumber of src/io/shim.ts, and bits of kStateFlags, as TlsFlag.
constexpr size_t kStateVersion = 0;
constexpr size_t kStateCipher = 1;
constexpr size_t kStateGroup = 2;
constexpr size_t kStateSignature = 3;
constexpr size_t kStateStaple = 4;
constexpr size_t kStateFlags = 5;
constexpr size_t kStateAlpnLength = 6;
constexpr size_t kStateNameLength = 7;
constexpr size_t kStateNumbers = 8;
constexpr int32_t kStateResumed = 1;
constexpr int32_t kStateHasPeer = 2;
constexpr int32_t kStateVerified = 4;
// Describes a session after its handshake: fills `numbers`, and returns ALPN, server name and session ID as one string of bytes.
napi_value makeTlsState(napi_env env, const TlsSession& session, int32_t* numbers);
// Returns a TlsNames (src/io/shim.ts).
napi_value makeTlsNames(napi_env env, const TlsSession& session);
// Returns the peer's certificate chain in DER form, the leaf first.
napi_value makePeerCertificates(napi_env env, const TlsSession& session);
// Returns the DER form of the certificate that issued the peer's, from the verified chain; undefined if there is none.
napi_value makePeerIssuer(napi_env env, const TlsSession& session);
// Returns the local certificate in DER form; undefined if there is none.
napi_value makeOwnCertificate(napi_env env, const TlsSession& session);

}  // namespace baton
