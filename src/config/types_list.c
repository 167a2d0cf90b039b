/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types_list.c - lists: addresses, ranges, destinations, ports, servers,
 * hosts and paths; see types.h.
 *
 * Names are kept in small letters, as they are compared without case.
 */
#include "config/types.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "config/store.h"

enum { DNS_PORT = 53, WEIGHT_MAX = 256 };

/* type_count() looks at any list as if it were one of words. */
#define IS_A_LIST(type) \
	static_assert(offsetof(struct type, count) ==			\
	    offsetof(struct conf_words, count), "lists are alike")
IS_A_LIST(conf_addrs);
IS_A_LIST(conf_rules);
IS_A_LIST(conf_ports);
IS_A_LIST(conf_servers);
IS_A_LIST(conf_refs);

/* A zeroed element at the end of *list. */
#define APPEND(r, list)							\
	((list)->at = store_grow((r)->store, (list)->at, (list)->count,	\
	    sizeof *(list)->at), &(list)->at[(list)->count++])

/* --- addresses ---------------------------------------------------------- */

static void
add_addr(struct conf_reading *r, struct conf_addrs *list, struct addr a)
{
	*APPEND(r, list) = a;
}

static bool
parse_addrs(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	struct addr a;

	if ((!addr_parse(&a, text) && !addr_parse_ip(&a, text, strlen(text),
	    DNS_PORT)) || a.family == ADDR_UNIX)
		return type_refuse(r, t, text);
	add_addr(r, value, a);
	return true;
}

/* "unix:/path"; the text must last. */
static bool
parse_unix(struct conf_reading *r, const char *text, struct addr *a)
{
	if (text[strlen("unix:")] != '/')
		return type_fail(r, "\"%s\": the path must begin with /",
		    text);
	if (!addr_parse(a, text))
		return type_fail(r, "\"%s\": the path is too long for a "
		    "socket", text);
	return true;
}

static bool
parse_binds(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	struct addr a;
	uint16_t port;

	if (strcmp(text, "off") == 0)
		return true;
	if (str_starts(str_of(text), STR("unix:"))) {
		if (!parse_unix(r, store_text(r->store, str_of(text)), &a))
			return false;
		add_addr(r, value, a);
		return true;
	}
	if (text[0] == ':' && addr_parse_port(&port, text + 1,
	    strlen(text + 1))) {
		add_addr(r, value, (struct addr){ .family = ADDR_IP4,
		    .port = port });
		add_addr(r, value, (struct addr){ .family = ADDR_IP6,
		    .port = port });
		return true;
	}
	if (!addr_parse(&a, text))
		return type_refuse(r, t, text);
	add_addr(r, value, a);
	return true;
}

static void
print_addrs(FILE *out, const struct config *c, const void *value, size_t i)
{
	const struct conf_addrs *list = value;
	char text[CONF_WORD_MAX + 1];

	(void)c;
	fputs(addr_print(&list->at[i], text, sizeof text), out);
}

/* --- ranges and destinations -------------------------------------------- */

/*
 * What the words stand for.  To connect to an unspecified address is to
 * connect to oneself, so it is one of loopback's.
 */
static const struct { const char *word, *range; } words[] = {
	{ "loopback",	"127.0.0.0/8" },
	{ "loopback",	"::1" },
	{ "loopback",	"0.0.0.0" },
	{ "loopback",	"::" },
	{ "link-local",	"169.254.0.0/16" },
	{ "link-local",	"fe80::/10" },
	{ "private",	"10.0.0.0/8" },
	{ "private",	"172.16.0.0/12" },
	{ "private",	"192.168.0.0/16" },
	{ "private",	"fc00::/7" },
	{ "all",	"0.0.0.0/0" },
	{ "all",	"::/0" },
};

static void
add_rule(struct conf_reading *r, struct conf_rules *list,
    struct conf_rule rule)
{
	*APPEND(r, list) = rule;
}

static bool
add_words(struct conf_reading *r, struct conf_rules *list, const char *text,
    uint16_t port)
{
	bool found = false;

	if (strcmp(text, "public") == 0) {
		add_rule(r, list, (struct conf_rule){ .kind = RULE_PUBLIC,
		    .port = port });
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct conf_rule rule = { .kind = RULE_RANGE, .port = port };

		if (strcmp(words[i].word, text) != 0)
			continue;
		bool ok = addr_range_parse(&rule.range, words[i].range);
		ASSERT(ok);
		add_rule(r, list, rule);
		found = true;
	}
	return found;
}

static bool
add_range(struct conf_reading *r, struct conf_rules *list, const char *text,
    uint16_t port)
{
	struct conf_rule rule = { .kind = RULE_RANGE, .port = port };

	if (!addr_range_parse(&rule.range, text))
		return false;
	add_rule(r, list, rule);
	return true;
}

static bool
add_name(struct conf_reading *r, struct conf_rules *list, struct str name,
    uint16_t port)
{
	struct conf_rule rule = { .kind = RULE_NAME, .port = port };

	if (str_starts(name, STR("*."))) {
		rule.kind = RULE_SUFFIX;
		name = str_skip(name, 2);
	}
	if (!type_is_host_name(name))
		return false;
	rule.name = type_lower(r->store, name);
	add_rule(r, list, rule);
	return true;
}

/*
 * Take the port off *s: "[fd00::/8]:443" or "10.0.0.0/8:443".  Several
 * colons without brackets are an IPv6 address.
 */
static bool
cut_port(struct str *s, uint16_t *port)
{
	size_t colon = str_find_last(*s, ':');
	bool brackets = s->len > 0 && s->at[0] == '[';

	*port = 0;
	if (colon < s->len && (brackets ? s->at[s->len - 1] != ']' :
	    str_find(*s, ':') == colon)) {
		if (!addr_parse_port(port, s->at + colon + 1,
		    s->len - colon - 1))
			return false;
		*s = str_head(*s, colon);
	}
	if (!brackets)
		return true;
	if (s->len <= 2 || s->at[s->len - 1] != ']')
		return false;
	*s = str_make(s->at + 1, s->len - 2);
	return str_find(*s, ':') < s->len;
}

static bool
parse_ranges(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	return add_words(r, value, text, 0) || add_range(r, value, text, 0) ||
	    type_refuse(r, t, text);
}

static bool
parse_destinations(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	struct str s = str_of(text);
	char host[CONF_WORD_MAX + 1];
	uint16_t port;

	if (!cut_port(&s, &port))
		return type_refuse(r, t, text);
	ASSERT(s.len < sizeof host);
	memcpy(host, s.at, s.len);
	host[s.len] = '\0';
	return add_words(r, value, host, port) ||
	    add_range(r, value, host, port) ||
	    add_name(r, value, s, port) || type_refuse(r, t, text);
}

static void
print_range(FILE *out, const struct conf_rule *rule)
{
	const struct addr_range *range = &rule->range;
	struct addr a = { .family = range->family };
	char text[ADDR_TEXT];
	bool brackets = rule->port != 0 && range->family == ADDR_IP6;

	memcpy(a.ip, range->ip, sizeof a.ip);
	fprintf(out, "%s%s", brackets ? "[" : "",
	    addr_print_ip(&a, text, sizeof text));
	if (range->bits < (range->family == ADDR_IP6 ? 128 : 32))
		fprintf(out, "/%u", range->bits);
	if (brackets)
		fputc(']', out);
}

static void
print_rules(FILE *out, const struct config *c, const void *value, size_t i)
{
	const struct conf_rules *list = value;
	const struct conf_rule *rule = &list->at[i];

	(void)c;
	switch (rule->kind) {
	case RULE_RANGE:
		print_range(out, rule);
		break;
	case RULE_PUBLIC:
		fputs("public", out);
		break;
	case RULE_SUFFIX:
		fputs("*.", out);
		/* fall through */
	case RULE_NAME:
		fputs(rule->name, out);
	}
	if (rule->port != 0)
		fprintf(out, ":%u", rule->port);
}

/* --- ports -------------------------------------------------------------- */

static bool
parse_ports(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	struct conf_ports *list = value;
	struct str s = str_of(text);
	size_t dash = str_find(s, '-');
	uint16_t first = 1, last = 65535;

	if (strcmp(text, "all") != 0) {
		if (!addr_parse_port(&first, text, dash))
			return type_refuse(r, t, text);
		last = first;
		if (dash < s.len && (!addr_parse_port(&last, text + dash + 1,
		    s.len - dash - 1) || last < first))
			return type_refuse(r, t, text);
	}
	(void)APPEND(r, list);
	list->at[list->count - 1].first = first;
	list->at[list->count - 1].last = last;
	return true;
}

static void
print_ports(FILE *out, const struct config *c, const void *value, size_t i)
{
	const struct conf_ports *list = value;
	unsigned first = list->at[i].first, last = list->at[i].last;

	(void)c;
	if (first == 1 && last == 65535)
		fputs("all", out);
	else if (first == last)
		fprintf(out, "%u", first);
	else
		fprintf(out, "%u-%u", first, last);
}

/* --- servers ------------------------------------------------------------ */

static bool
parse_server_address(struct conf_reading *r, const struct conf_type *t,
    struct conf_server *server)
{
	const char *text = server->text;
	struct str s = str_of(text);
	size_t colon = str_find_last(s, ':');
	struct str host = str_head(s, colon);

	if (str_starts(s, STR("unix:")))
		return parse_unix(r, text, &server->addr);
	if (colon == s.len)
		return type_fail(r, "\"%s\" needs a port, as in %s:80", text,
		    text);
	if (!addr_parse_port(&server->port, text + colon + 1,
	    s.len - colon - 1))
		return type_refuse(r, t, text);
	if (addr_parse(&server->addr, text))
		return true;
	if (!type_is_host_name(host))
		return type_refuse(r, t, text);
	server->host = type_lower(r->store, host);
	return true;
}

static bool
parse_server_option(struct conf_reading *r, struct conf_server *server,
    struct str option)
{
	static const struct str weight = STR_INIT("weight=");
	uint64_t v;

	if (str_equal(option, STR("backup")) && !server->backup) {
		server->backup = true;
		return true;
	}
	if (!str_starts(option, weight) || server->weight != 0)
		return type_fail(r, "\"" STR_FMT "\": only weight=NUMBER and "
		    "backup may follow a server, once each", STR_ARG(option));
	if (!str_number(str_skip(option, weight.len), &v) || v < 1 ||
	    v > WEIGHT_MAX)
		return type_fail(r, "\"" STR_FMT "\" is outside 1 to %d",
		    STR_ARG(option), WEIGHT_MAX);
	server->weight = (unsigned)v;
	return true;
}

static bool
is_listed(const struct conf_servers *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->at[i].text, text) == 0)
			return true;
	return false;
}

/* The next word of *rest, cut off; empty at the end. */
static struct str
next_word(struct str *rest)
{
	struct str s = str_trim(*rest);
	size_t n = 0;

	while (n < s.len && s.at[n] != ' ' && s.at[n] != '\t')
		n++;
	*rest = str_skip(s, n);
	return str_head(s, n);
}

static bool
parse_servers(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	struct conf_servers *list = value;
	struct conf_server server = { .weight = 0 };
	struct str rest = str_of(text);
	struct str word = next_word(&rest);
	bool is_unix = str_starts(word, STR("unix:"));

	/* Paths know capitals; names don't. */
	server.text = is_unix ? store_text(r->store, word) :
	    type_lower(r->store, word);
	if (!parse_server_address(r, t, &server))
		return false;
	while (word = next_word(&rest), word.len > 0)
		if (!parse_server_option(r, &server, word))
			return false;
	if (is_listed(list, server.text))
		return type_fail(r, "\"%s\" is listed twice", server.text);
	server.weight = MAX(server.weight, 1u);
	*APPEND(r, list) = server;
	return true;
}

static void
print_servers(FILE *out, const struct config *c, const void *value, size_t i)
{
	const struct conf_servers *list = value;
	const struct conf_server *s = &list->at[i];

	(void)c;
	fputs(s->text, out);
	if (s->weight != 1)
		fprintf(out, " weight=%u", s->weight);
	if (s->backup)
		fputs(" backup", out);
}

/* --- hosts and paths ---------------------------------------------------- */

static void
add_word(struct conf_reading *r, struct conf_words *list, const char *word)
{
	*APPEND(r, list) = word;
}

/* "*", "*.suffix", a name, or a literal address as a Host field has it. */
static bool
parse_hosts(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	struct str s = str_of(text);
	struct str name = str_starts(s, STR("*.")) ? str_skip(s, 2) : s;
	struct addr a;
	bool is_literal = addr_parse_ip(&a, text, s.len, 0) &&
	    (text[0] == '[') == (str_find(s, ':') < s.len);

	if (!is_literal && !type_is_host_name(name) && strcmp(text, "*") != 0)
		return type_refuse(r, t, text);
	add_word(r, value, type_lower(r->store, s));
	return true;
}

/* A path that a request can have after it was normalised. */
static bool
is_plain_path(const char *text)
{
	struct str rest = str_of(text), segment;

	if (text[0] != '/')
		return false;
	for (const char *p = text; *p != '\0'; p++)
		if (*p <= ' ' || *p == 0x7f || strchr("?#\\\"<>", *p) != NULL)
			return false;
	while (str_split(&rest, '/', &segment))
		if (str_equal(segment, STR(".")) ||
		    str_equal(segment, STR("..")))
			return false;
	return true;
}

static bool
parse_paths(struct conf_reading *r, const struct conf_type *t,
    const char *text, void *value)
{
	if (!is_plain_path(text))
		return type_refuse(r, t, text);
	add_word(r, value, store_text(r->store, str_of(text)));
	return true;
}

static void
print_words(FILE *out, const struct config *c, const void *value, size_t i)
{
	const struct conf_words *list = value;

	(void)c;
	fputs(list->at[i], out);
}

/* --- the rows ----------------------------------------------------------- */

const struct conf_type type_ADDRS = { .name = "list of addresses",
    .hint = "an address or address:port", .shape = CONF_WORDS,
    .parse = parse_addrs, .print = print_addrs };
const struct conf_type type_BINDS = { .name = "list of addresses",
    .hint = "address:port, [address]:port, :port, unix:/path or off",
    .shape = CONF_WORDS, .parse = parse_binds, .print = print_addrs };
const struct conf_type type_RANGES = { .name = "list of addresses and blocks",
    .hint = "an address, a block whose bits after the prefix are zero, or "
    "loopback, link-local, private, public or all",
    .shape = CONF_WORDS, .parse = parse_ranges, .print = print_rules };
const struct conf_type type_DESTINATIONS = { .name = "list of destinations",
    .hint = "an address, a block whose bits after the prefix are zero, "
    "loopback, link-local, private, public, all, a name or *.suffix, "
    "with or without :port",
    .shape = CONF_WORDS, .parse = parse_destinations, .print = print_rules };
const struct conf_type type_PORTS = { .name = "list of ports",
    .hint = "a port, a range as 8000-8999, or all", .shape = CONF_WORDS,
    .parse = parse_ports, .print = print_ports };
const struct conf_type type_SERVERS = { .name = "server on each line",
    .hint = "host:port, [address]:port or unix:/path", .shape = CONF_LINES,
    .parse = parse_servers, .print = print_servers };
const struct conf_type type_HOSTS = { .name = "list of hosts",
    .hint = "a host name, *.suffix, an address or *", .shape = CONF_WORDS,
    .parse = parse_hosts, .print = print_words };
const struct conf_type type_PATHS = { .name = "list of paths",
    .hint = "a path that begins with / and has no ?, #, /./ or /../",
    .shape = CONF_WORDS, .parse = parse_paths, .print = print_words };
