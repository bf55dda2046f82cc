package com.marquetry.cassandra;

import java.util.HashSet;
import java.util.Set;

/** What was logged already, so that it is once. */
final class Said
{
    /** More is not kept: what is logged is bounded, too. */
    private static final int MOST = 100;

    private final Set<String> texts = new HashSet<>();

    synchronized boolean isNew(String text)
    {
        return texts.size() < MOST && texts.add(text);
    }

    synchronized void clear()
    {
        texts.clear();
    }
}
