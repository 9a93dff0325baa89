"""The agent of an edge: a pod there that tells the centre what it sees, and is told what is wanted.

It shares nothing with gateway and worker but HTTP: it loads none of their libraries and fits into little memory.
"""
