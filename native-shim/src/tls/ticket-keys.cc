#include "tls/ticket-keys.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstring>

namespace baton {
namespace {

int ticketKeysIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

bool prepareHmac(EVP_MAC_CTX* hmac, const TicketKey& key) {
  char digest[] = "SHA256";
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, const_cast<uint8_t*>(key.hmac), TicketKey::kHmacBytes),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_construct_end()};
  return EVP_MAC_CTX_set_params(hmac, parameters) == 1;
}

// OpenSSL's callback. Returns 1 on success, 2 to replace the ticket as well, 0 to ignore the ticket or to make none, -1 on errors.
int useKey(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* hmac, int encrypts) {
  const auto* owner = static_cast<const TicketKeys*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), ticketKeysIndex()));
  const TicketKeys::Keys keys = owner == nullptr ? nullptr : owner->get();
  if (keys == nullptr || keys->empty()) return 0;
  if (encrypts != 0) {
    const TicketKey& key = keys->front();
    if (RAND_bytes(iv, EVP_MAX_IV_LENGTH) != 1) return -1;
    memcpy(name, key.name, TicketKey::kNameBytes);
    return EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key.aes, iv) == 1 && prepareHmac(hmac, key) ? 1 : -1;
  }
  for (const TicketKey& key : *keys) {
    if (memcmp(name, key.name, TicketKey::kNameBytes) != 0) continue;
    if (EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key.aes, iv) != 1 || !prepareHmac(hmac, key)) return -1;
    // A client uses a ticket of TLS 1.3 once (RFC 8446, appendix C.4), so it needs another one.
    return &key == &keys->front() && SSL_version(ssl) < TLS1_3_VERSION ? 1 : 2;
  }
  return 0;
}

}  // namespace

bool TicketKeys::set(const std::string& bytes) {
  if (bytes.size() % TicketKey::kBytes != 0) return false;
  auto keys = std::make_shared<std::vector<TicketKey>>(bytes.size() / TicketKey::kBytes);
  for (size_t i = 0; i < keys->size(); ++i) memcpy(&(*keys)[i], bytes.data() + i * TicketKey::kBytes, TicketKey::kBytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  keys_ = std::move(keys);
  return true;
}

TicketKeys::Keys TicketKeys::get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return keys_;
}

TicketKeys& TicketKeys::shared() {
  static TicketKeys keys;
  return keys;
}

void TicketKeys::use(SSL_CTX* context) {
  SSL_CTX_set_ex_data(context, ticketKeysIndex(), this);
  SSL_CTX_set_tlsext_ticket_key_evp_cb(context, useKey);
}

}  // namespace baton
