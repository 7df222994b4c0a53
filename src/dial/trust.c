/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the question who is at the other end.
 *
 * How it works: certificates are read into memory before the process gives up files. The other end must show a chain to one of them
 * that holds now and names the host that was asked for; nothing turns that off. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "dial/dial.h"

/* Where distributions keep what they trust, in one file. */
static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                      "/etc/ssl/cert.pem"};

static const char *why(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text ? text : "no reason is known";
}

/* The host's store may be missing; then only what PALE_CA_FILE names counts. */
static void load_host(SSL_CTX *ctx)
{
    const char *named = getenv("SSL_CERT_FILE");
    if (named && named[0]) {
        (void)SSL_CTX_load_verify_file(ctx, named);
        return;
    }
    for (size_t i = 0; i < sizeof(bundles) / sizeof(bundles[0]); i++)
        if (access(bundles[i], R_OK) == 0 && SSL_CTX_load_verify_file(ctx, bundles[i]) == 1)
            return;
}

SSL_CTX *trust_load(struct pale_err *e)
{
    static const unsigned char protocols[] = "\x08http/1.1";
    const char *more = getenv("PALE_CA_FILE");
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_alpn_protos(ctx, protocols, sizeof(protocols) - 1) != 0) {
        err_set(e, PALE_INTERNAL, "OpenSSL does not start: %s", why());
        SSL_CTX_free(ctx);
        return NULL;
    }
    /* An end without a farewell is one all the same: what is said inside has lengths of its own. */
    SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    load_host(ctx);
    if (more && more[0] && SSL_CTX_load_verify_file(ctx, more) != 1) {
        err_set(e, PALE_BAD_INPUT, "PALE_CA_FILE: %s: %s", more, why());
        SSL_CTX_free(ctx);
        return NULL;
    }
    ERR_clear_error();
    return ctx;
}

static bool set_name(SSL *ssl, const char *name)
{
    unsigned char address[16];
    bool is_address = inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
    if (is_address)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

/* Waits for what the handshake needs next. */
static int await(SSL *ssl, int fd, int result, const char *name, int64_t until_ms, struct pale_err *e)
{
    int kind = SSL_get_error(ssl, result);
    long verdict = SSL_get_verify_result(ssl);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
        struct pollfd p[2] = {{.fd = fd, .events = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT}, {.fd = DIAL_OWN}};
        int64_t left = until_ms - clock_ms();
        int n = left <= 0 ? 0 : poll(p, 2, (int)left);
        if (n == 0)
            return err_set(e, PALE_TIMEOUT, "%s did not answer in time", name);
        if (n > 0 && p[1].revents)
            _exit(0); /* nobody waits for us any more */
        return n > 0 || errno == EINTR ? 0 : err_os(e, "wait for %s", name);
    }
    if (verdict != X509_V_OK)
        return err_set(e, PALE_DENIED, "the certificate of %s does not hold: %s; if its CA is your own, name it with PALE_CA_FILE", name,
                       X509_verify_cert_error_string(verdict));
    return err_set(e, PALE_PROTOCOL, "what answers as %s does not speak TLS as we do: %s", name, why());
}

SSL *trust_prove(SSL_CTX *ctx, int fd, const char *name, int64_t until_ms, struct pale_err *e)
{
    SSL *ssl = SSL_new(ctx);
    int r = 0, result;
    if (!ssl || SSL_set_fd(ssl, fd) != 1 || !set_name(ssl, name))
        r = err_set(e, PALE_INTERNAL, "OpenSSL does not start: %s", why());
    while (r == 0 && (result = SSL_connect(ssl)) != 1) {
        r = await(ssl, fd, result, name, until_ms, e);
        ERR_clear_error();
    }
    if (r == 0 && SSL_get_verify_result(ssl) != X509_V_OK)
        r = err_set(e, PALE_DENIED, "the certificate of %s does not hold", name);
    if (r == 0)
        return ssl;
    SSL_free(ssl);
    return NULL;
}
